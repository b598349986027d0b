// SPDX-License-Identifier: Apache-2.0

// Posts of a link of any kind: their pending pieces, and their completions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <span>

#include "csrc/transport/rma.h"

namespace pccl::transport {

/// Returns how many of `pieces`, at most `room`, are within their memories, from the first on; an
/// error if the first one is not.
[[nodiscard]] PCCL_API Result<std::size_t> valid_prefix(std::span<const RmaPiece> pieces,
                                                        std::size_t room);

/// Checks that all pieces, one at least, are within their memories; returns the error of one that
/// is not.
[[nodiscard]] PCCL_API Status check_all(std::span<const RmaPiece> pieces);

/// Post that was taken, until all its pieces are complete.
struct RmaPost {
    std::uint64_t ticket = 0;
    std::size_t pieces = 0;  // not complete yet
    std::size_t failed = 0;  // complete pieces that failed
    Status status;           // of the first that failed
};

class PCCL_API RmaPosts {
   public:
    static constexpr std::size_t kMost = 4096;  // open, or complete and not reported

    [[nodiscard]] bool has_room() const { return open_.size() + complete_.size() < kMost; }
    /// Begins a post. Its address is stable until its last finish(). `pieces` may grow before the
    /// first.
    RmaPost& begin(std::uint64_t ticket, std::size_t pieces);
    /// Completes `pieces` of its pieces.
    void finish(RmaPost& post, const Status& status, std::size_t pieces = 1);
    /// Completes all posts: no RmaPost stays.
    void fail_all(const Status& status);
    /// Returns the completions for poll().
    std::size_t take_completions(std::span<RmaCompletion> into);

    // Counters for notifications, which are dropped when something before them has failed and the
    // caller had no completion of it: a notification is sent if failed(), once all before it is
    // complete, equals reported() at the time of notify().
    [[nodiscard]] std::uint64_t failed() const { return failed_; }  // pieces, so far
    /// Returns the failed pieces that take_completions() has reported.
    [[nodiscard]] std::uint64_t reported() const { return reported_; }

   private:
    std::list<RmaPost> open_;
    std::deque<RmaPost> complete_;
    std::uint64_t failed_ = 0;
    std::uint64_t reported_ = 0;
};

}  // namespace pccl::transport
