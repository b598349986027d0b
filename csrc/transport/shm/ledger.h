// The registrations of a process, as the processes that copy from and to them see them: a page file
// that they map, with a line for each.
//
// A line holds the nonce of its registration while that lasts. The rule of rma.h then costs a
// reader one load:
//
//     reader:  copies; fence; takes the copy for good only if the line still has the nonce
//     owner:   clears the line; fence; hands the memory back to its caller, who writes to it
//
// If the reader copied a byte that was written afterwards, it also sees that the line was cleared.
// A writer must not only know: it must not write. So it says that it is in there, as with a hazard
// pointer (M. M. Michael, 2004), but with a count for each line:
//
//     writer:  adds 1 to the line's writers; looks for the nonce; copies; looks again; takes 1 off
//     owner:   clears the line; waits until it has no writers; hands the memory back
//
// Both are sequentially consistent: either the writer sees the line cleared, or the owner its
// count. A writer that is stopped in between (SIGSTOP, a freezer, no core for a while) would go on
// where it was. So the owner, when it has waited for a moment, sees to it that such a writer
// reaches nothing any more:
//
//   - memory that peers map: the owner puts copies of the pages in their place (make_private() of
//     mapping.h). The writer goes on in pages that nobody looks at.
//   - memory that the kernel copies to: each call writes a word of the owner's first, the gate,
//     and nothing where it cannot. The owner shuts it, and opens another for its other
//     registrations. What is left is a call that the kernel is in the middle of, for which the
//     owner waits kWriterTimeout: it stops for no signal, and is over with its process.
//   - memory of GPUs: engines copy to what they have opened, which nobody takes from them. The
//     owner waits kWriterTimeout.
//
// A line is used again only once no writer is in there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/transport/mapping.h"

namespace pccl::transport::shm {

struct alignas(kCacheLine) LedgerLine {
    std::atomic<std::uint64_t> nonce;  // 0: none
    std::atomic<std::uint32_t> writers;
    std::atomic<std::uint64_t> gate;  // its address in the owner's process
};
static_assert(sizeof(LedgerLine) == kCacheLine && std::atomic<std::uint64_t>::is_always_lock_free);

/// Of one process. Safe from every thread.
class PCCL_API Ledger {
   public:
    static constexpr std::size_t kLines = std::size_t{64} * 1024;
    static constexpr Duration kWriterTimeout = std::chrono::seconds(2);

    static Result<std::shared_ptr<Ledger>> create();

    /// A line for a registration. kResourceExhausted when all are taken.
    Result<std::uint32_t> open(std::uint64_t nonce);
    /// The registration is over: who copies from now on, or is copying, finds out.
    void end(std::uint32_t line);
    /// Whether no writer is in there any more, for which it waits at most so long.
    [[nodiscard]] bool await_no_writers(std::uint32_t line, Duration timeout) const;
    /// Calls of the kernel that have not begun by now write nothing to registrations that have
    /// ended. Those of others find the new gate.
    Status shut_gate();
    /// Of one that has ended: another registration may have the line once no writer is in there.
    void give_back(std::uint32_t line);

    [[nodiscard]] const ProcessFile& file() const { return file_; }
    /// In this process.
    [[nodiscard]] std::uint64_t address_of(std::uint32_t line) const;

   private:
    Ledger(Mapping mapping, const ProcessFile& file, Mapping gate)
        : mapping_(std::move(mapping)), file_(file), gate_(std::move(gate)) {}
    [[nodiscard]] LedgerLine& at(std::uint32_t line) const;
    /// Under mutex_: where every writer has left by now.
    void free_left_lines();

    const Mapping mapping_;
    const ProcessFile file_;
    std::mutex mutex_;  // guards what follows
    Mapping gate_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> left_;  // given back with a writer in there
    std::uint32_t used_ = 0;           // lines that were ever open
};

/// One line of a peer's ledger.
class PCCL_API PeerLine {
   public:
    /// `line` is below Ledger::kLines. Errors are those of Mapping::of_process().
    static Result<PeerLine> map(const ProcessFile& ledger, std::uint32_t line);

    /// Whether all that was copied from the registration before this call is good.
    [[nodiscard]] bool is_open(std::uint64_t nonce) const;
    /// False when the registration is over: then nothing may be written. Else the owner waits until
    /// leave().
    [[nodiscard]] bool enter(std::uint64_t nonce) const;
    /// Its address in the owner's process, for writes by the kernel.
    [[nodiscard]] std::uint64_t gate() const;
    /// Whether the registration was still there.
    bool leave(std::uint64_t nonce) const;

   private:
    PeerLine(Mapping page, LedgerLine* line) : page_(std::move(page)), line_(line) {}

    Mapping page_;
    LedgerLine* line_;
};

}  // namespace pccl::transport::shm
