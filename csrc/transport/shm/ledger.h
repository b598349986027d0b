// SPDX-License-Identifier: Apache-2.0

// Ledger: the registrations of a process, as the processes that access them see them. It is a file
// of pages that they map, with a line for each registration.
//
// A line contains the nonce of its registration while that lasts. The rule of rma.h then costs a
// reader one load:
//
//     reader:  copies; fence; accepts the copy only if the line still has the nonce
//     owner:   clears the line; fence; returns the memory to its caller, who writes to it
//
// If the reader copied a byte that was written afterwards, it also sees that the line was cleared.
// For a writer a check afterwards is not enough: it must not write. So it announces its access, as
// with a hazard pointer (M. M. Michael, 2004), but with a count for each line:
//
//     writer:  adds 1 to the line's writers; checks the nonce; copies; checks again; subtracts 1
//     owner:   clears the line; waits until it has no writers; returns the memory
//
// Both are sequentially consistent: either the writer sees the line cleared, or the owner sees its
// count. A writer that is stopped in between (SIGSTOP, a freezer, no core for a while) would resume
// its write later. So the owner, when it has waited for a moment, ensures that such a writer
// reaches nothing any more:
//
//   - memory that peers map: the owner replaces the pages by copies (make_private() of
//     mapping.h). The writer continues in pages that nobody reads.
//   - memory that the kernel copies to: each call writes a word of the owner's first, the gate,
//     and nothing where it cannot. The owner shuts the gate, and opens another for its other
//     registrations. A call that the kernel is already executing remains; the owner waits
//     kWriterTimeout for it. Such a call stops for no signal, and ends with its process.
//   - memory of GPUs: copy engines write to the memory that they have opened, and nothing
//     can revoke that. The owner waits kWriterTimeout.
//
// A line is reused only once it has no writer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/transport/mapping.h"

namespace pccl::transport::shm {

struct alignas(kCacheLine) LedgerLine {
    std::atomic<std::uint64_t> nonce;  // 0: none
    std::atomic<std::uint32_t> writers;
    std::atomic<std::uint64_t> gate;  // its address in the owner's process
};
static_assert(sizeof(LedgerLine) == kCacheLine && std::atomic<std::uint64_t>::is_always_lock_free);

/// Ledger of one process. Thread-safe.
class PCCL_API Ledger {
   public:
    static constexpr std::size_t kLines = std::size_t{64} * 1024;
    static constexpr Duration kWriterTimeout = std::chrono::seconds(2);

    static Result<std::shared_ptr<Ledger>> create();

    /// Opens a line for a registration. kResourceExhausted when all are taken.
    Result<std::uint32_t> open(std::uint64_t nonce);
    /// Ends the registration: present and later copies detect it.
    void end(std::uint32_t line);
    /// Waits until the line has no writer, at most `timeout`; returns whether it has none.
    [[nodiscard]] bool await_no_writers(std::uint32_t line, Duration timeout) const;
    /// Replaces the gate: kernel calls that have not begun by now write nothing to registrations
    /// that have ended. Calls for other registrations use the new gate.
    Status shut_gate();
    /// Gives back the line of an ended registration: another may get it once it has no writer.
    void give_back(std::uint32_t line);

    [[nodiscard]] const ProcessFile& file() const { return file_; }
    /// Returns the address of the line in this process.
    [[nodiscard]] std::uint64_t address_of(std::uint32_t line) const;

   private:
    Ledger(Mapping mapping, const ProcessFile& file, Mapping gate)
        : mapping_(std::move(mapping)), file_(file), gate_(std::move(gate)) {}
    [[nodiscard]] LedgerLine& at(std::uint32_t line) const;
    /// Frees the lines that all writers have left. The caller holds mutex_.
    void free_left_lines();

    const Mapping mapping_;
    const ProcessFile file_;
    std::mutex mutex_;  // guards the members below
    Mapping gate_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> left_;  // given back while they had a writer
    std::uint32_t used_ = 0;           // lines that were ever open
};

/// One line of a peer's ledger.
class PCCL_API PeerLine {
   public:
    /// Maps one line; `line` is below Ledger::kLines. Errors are those of Mapping::of_process().
    static Result<PeerLine> map(const ProcessFile& ledger, std::uint32_t line);

    /// Returns whether all bytes that were copied from the registration before this call are good.
    [[nodiscard]] bool is_open(std::uint64_t nonce) const;
    /// Announces a writer. Returns false when the registration has ended: nothing may be written
    /// then. Otherwise the owner waits until leave().
    [[nodiscard]] bool enter(std::uint64_t nonce) const;
    /// Returns the gate's address in the owner's process, for writes by the kernel.
    [[nodiscard]] std::uint64_t gate() const;
    /// Ends the access; returns whether the registration was still there.
    bool leave(std::uint64_t nonce) const;

   private:
    PeerLine(Mapping page, LedgerLine* line) : page_(std::move(page)), line_(line) {}

    Mapping page_;
    LedgerLine* line_;
};

}  // namespace pccl::transport::shm
