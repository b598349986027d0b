// SPDX-License-Identifier: Apache-2.0

// State of a transfer in its connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/transfer.h>
#include "csrc/base/fork.h"
#include "csrc/p2p/transfers/plan.h"
#include "csrc/runtime/flight/session_recorder.h"

namespace pccl::p2p {

class Connection;

/// Arguments of a transfer. `indices` are blocks of the plan; empty: all blocks.
struct TransferArgs {
    transport::RmaOp op = transport::RmaOp::kRead;
    std::shared_ptr<const Plan> plan;
    std::vector<std::uint32_t> indices{};
    std::vector<std::byte> notification{};  // empty: none
    StreamEvent after{};                    // no data moves before it
    std::optional<Stream> in_order_of{};    // of a read
};

class TransferRequest {
   public:
    /// `args` are checked, and their memory is in use (RegisteredMemory::begin_use()). `pair` is
    /// the connection's number in the flight record.
    TransferRequest(TransferArgs args, std::shared_ptr<Connection> connection, std::uint32_t pair);

    // Thread-safe:

    /// Returns the mark of the process that posted it.
    [[nodiscard]] const ForkMark& made_in() const { return made_in_; }
    [[nodiscard]] bool is_complete() const { return done_.load(std::memory_order_acquire); }
    /// Returns the outcome. Valid once complete.
    [[nodiscard]] const Status& status() const { return status_; }
    void give_up() { given_up_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool is_given_up() const { return given_up_.load(std::memory_order_relaxed); }
    [[nodiscard]] const std::shared_ptr<Connection>& connection() const { return connection_; }
    [[nodiscard]] const TransferArgs& args() const { return args_; }
    /// Returns whether the transfer was refused before anything was posted. Valid once complete.
    [[nodiscard]] bool was_refused() const { return refused_; }
    /// Returns whether the peer gets a notification once all bytes are in place.
    [[nodiscard]] bool has_notification() const { return !args_.notification.empty(); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t blocks() const;
    [[nodiscard]] std::uint64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }
    [[nodiscard]] Duration taken() const;

    // Under the connection's lock:

    /// Returns whether its stream has reached `after`. An error of the GPU fails the transfer.
    bool may_begin();
    [[nodiscard]] bool has_more() const { return cursor_.block < blocks(); }
    /// Fills `steps` with the next pieces to post, and returns their number; 0 when only empty
    /// blocks are left.
    std::size_t next(std::span<PlanStep> steps) const {
        return steps_from(*args_.plan, cursor_, args_.indices, steps);
    }
    /// Returns the next pieces as one run, where they need no list.
    [[nodiscard]] std::optional<transport::RmaRun> next_run() const {
        return args_.indices.empty() ? run_from(*args_.plan, cursor_) : std::nullopt;
    }
    /// Records that one post has accepted `pieces` pieces, the last of which ends at `after`.
    void posted(std::size_t pieces, const PlanCursor& after);
    /// Records that one post has accepted `pieces` pieces of a run.
    void posted_of_run(std::size_t pieces) { posted(pieces, {cursor_.block + pieces, 0}); }
    void posted_nothing() { cursor_ = {blocks(), 0}; }
    /// Records the end of one post.
    void post_ended(const Status& status);
    /// Records that nothing more will be posted.
    void end_posting() {
        cursor_ = {blocks(), 0};
        all_posted_ = true;
    }
    void record_failure(const Status& status) {
        if (failure_.is_ok()) failure_ = status;
    }
    [[nodiscard]] bool has_failed() const { return !failure_.is_ok(); }
    [[nodiscard]] bool is_over() const { return all_posted_ && in_flight_ == 0; }
    /// Adds the transfer to the flight record when it is not over as its post returns. Other
    /// transfers are added at their end, since one record costs half the time of two.
    void record();
    /// Completes a transfer of which nothing was posted. Its memory is no longer in use.
    void refuse(const Status& status);
    /// Completes a transfer that is over. Its memory is no longer in use.
    void finish(const runtime::SessionPath& path);

   private:
    [[nodiscard]] runtime::SessionTransfer entry() const;

    const ForkMark made_in_;
    const TransferArgs args_;
    const std::shared_ptr<Connection> connection_;
    const std::uint64_t bytes_;
    const TimePoint begun_;
    const std::uint32_t pair_;
    std::uint64_t number_ = 0;  // in the flight record; 0: not recorded
    PlanCursor cursor_{};
    bool may_begin_;
    std::uint64_t in_flight_ = 0;  // posts
    bool all_posted_ = false;
    Status failure_;
    std::atomic<std::uint64_t> pieces_{0};
    std::atomic<bool> given_up_{false};
    bool refused_ = false;  // valid once done_
    Status status_;         // valid once done_
    TimePoint ended_{};     // valid once done_
    std::atomic<bool> done_{false};
};

}  // namespace pccl::p2p
