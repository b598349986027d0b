// What a link of any kind keeps of posts: which pieces are still to come, and what to tell of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <span>

#include "csrc/transport/rma.h"

namespace pccl::transport {

/// How many of `pieces`, at most `room`, are within their memories, from the first on; what is
/// wrong with the first where that is not.
[[nodiscard]] PCCL_API Result<std::size_t> valid_prefix(std::span<const RmaPiece> pieces,
                                                        std::size_t room);

/// That all of them, one at least, are within their memories; what is wrong with one that is not.
[[nodiscard]] PCCL_API Status check_all(std::span<const RmaPiece> pieces);

/// One that was taken, until all its pieces are over.
struct RmaPost {
    std::uint64_t ticket = 0;
    std::size_t pieces = 0;  // not over yet
    std::size_t failed = 0;  // of those that are
    Status status;           // of the first that failed
};

class PCCL_API RmaPosts {
   public:
    static constexpr std::size_t kMost = 4096;  // open, or complete and not told

    [[nodiscard]] bool has_room() const { return open_.size() + complete_.size() < kMost; }
    /// Stays where it is until its last finish(). `pieces` may be added to before the first.
    RmaPost& begin(std::uint64_t ticket, std::size_t pieces);
    /// So many of its pieces are over.
    void finish(RmaPost& post, const Status& status, std::size_t pieces = 1);
    /// Everything is: no RmaPost stays.
    void fail_all(const Status& status);
    /// What poll() tells.
    std::size_t take(std::span<RmaCompletion> into);

    // For notifications, which are dropped when something before them has failed unbeknownst to the
    // caller: a notification is sent if failed() is, once all before it is over, what reported()
    // was at notify().
    [[nodiscard]] std::uint64_t failed() const { return failed_; }      // pieces, so far
    [[nodiscard]] std::uint64_t reported() const { return reported_; }  // of these, in take()

   private:
    std::list<RmaPost> open_;
    std::deque<RmaPost> complete_;
    std::uint64_t failed_ = 0;
    std::uint64_t reported_ = 0;
};

}  // namespace pccl::transport
