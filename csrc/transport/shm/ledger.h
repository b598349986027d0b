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
// count. A writer that is killed in between leaves its count: the owner waits for kPatience, after
// which nothing of a dead process moves any more, and never uses that line again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/fork.h"
#include "csrc/base/status.h"
#include "csrc/transport/mapping.h"

namespace pccl::transport::shm {

struct alignas(kCacheLine) LedgerLine {
    std::atomic<std::uint64_t> nonce;  // 0: none
    std::atomic<std::uint32_t> writers;
};
static_assert(sizeof(LedgerLine) == kCacheLine && std::atomic<std::uint64_t>::is_always_lock_free);

/// Of one process. Safe from every thread.
class PCCL_API Ledger {
   public:
    static constexpr std::size_t kLines = std::size_t{64} * 1024;
    static constexpr Duration kPatience = std::chrono::seconds(2);

    static Result<std::shared_ptr<Ledger>> create();

    /// A line for a registration. kResourceExhausted when all are taken.
    Result<std::uint32_t> open(std::uint64_t nonce);
    /// The registration is over: who copies from now on, or is copying, finds out; no writer is in
    /// there any more. Does nothing in a child of fork(), whose parent goes on.
    void close(std::uint32_t line);

    [[nodiscard]] const ProcessFile& file() const { return file_; }
    /// In this process.
    [[nodiscard]] std::uint64_t address_of(std::uint32_t line) const;

   private:
    Ledger(Mapping mapping, const ProcessFile& file) : mapping_(std::move(mapping)), file_(file) {}
    [[nodiscard]] LedgerLine& at(std::uint32_t line) const;
    /// False when it took too long.
    static bool await_no_writers(const LedgerLine& line);

    const Mapping mapping_;
    const ProcessFile file_;
    const ForkMark made_in_;
    std::mutex mutex_;
    std::vector<std::uint32_t> free_;
    std::uint32_t used_ = 0;  // lines that were ever open
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
    /// Whether the registration was still there.
    bool leave(std::uint64_t nonce) const;

   private:
    PeerLine(Mapping page, LedgerLine* line) : page_(std::move(page)), line_(line) {}

    Mapping page_;
    LedgerLine* line_;
};

}  // namespace pccl::transport::shm
