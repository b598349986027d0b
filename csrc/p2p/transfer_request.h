// What a connection keeps of a transfer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/p2p/plan.h"
#include "csrc/p2p/stream_event.h"
#include "csrc/runtime/flight/session_recorder.h"

namespace pccl::p2p {

class Connection;

/// What is asked for. `indices` are blocks of the plan, none of them: all.
struct TransferArgs {
    transport::RmaOp op = transport::RmaOp::kRead;
    std::shared_ptr<const Plan> plan;
    std::vector<std::uint32_t> indices{};
    std::vector<std::byte> notification{};  // empty: none
    StreamEvent after{};                    // before which nothing moves
    std::optional<Stream> in_order_of{};    // of a read
};

class TransferRequest {
   public:
    /// `args` are checked, and its memory in use (LocalMemory::begin_use()).
    /// `pair` is what the flight record calls the connection.
    TransferRequest(TransferArgs args, std::shared_ptr<Connection> connection, std::uint32_t pair);

    // From every thread:

    [[nodiscard]] bool is_complete() const { return done_.load(std::memory_order_acquire); }
    /// Of one that is complete.
    [[nodiscard]] const Status& status() const { return status_; }
    void give_up() { given_up_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool is_given_up() const { return given_up_.load(std::memory_order_relaxed); }
    [[nodiscard]] const std::shared_ptr<Connection>& connection() const { return connection_; }
    [[nodiscard]] const TransferArgs& args() const { return args_; }
    /// Of one that is complete.
    [[nodiscard]] bool was_refused() const { return refused_; }
    /// For the peer, once all bytes are there.
    [[nodiscard]] bool has_notification() const { return !args_.notification.empty(); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t blocks() const;
    [[nodiscard]] std::uint64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }
    [[nodiscard]] Duration taken() const;

    // Under the connection's lock:

    /// Whether its stream has come so far. An error of the GPU fails it.
    bool may_begin();
    [[nodiscard]] bool has_more() const { return cursor_.block < blocks(); }
    /// The next pieces to be posted; none when only blocks without bytes are left.
    std::size_t next(std::span<Plan::PlanStep> steps) const {
        return args_.plan->steps_from(cursor_, args_.indices, steps);
    }
    /// The same where that takes no list of them.
    [[nodiscard]] std::optional<transport::RmaRun> next_run() const {
        return args_.indices.empty() ? args_.plan->run_from(cursor_) : std::nullopt;
    }
    /// One post has taken `pieces`, the last of which ends at `after`.
    void posted(std::size_t pieces, const Plan::PlanCursor& after);
    /// One post has taken so many of a run.
    void posted_of_run(std::size_t pieces) { posted(pieces, {cursor_.block + pieces, 0}); }
    void posted_nothing() { cursor_ = {blocks(), 0}; }
    /// One post is over.
    void post_ended(const Status& status);
    /// Nothing more will be posted.
    void end_posting() {
        cursor_ = {blocks(), 0};
        all_posted_ = true;
    }
    void fail(const Status& status) {
        if (failure_.is_ok()) failure_ = status;
    }
    [[nodiscard]] bool has_failed() const { return !failure_.is_ok(); }
    [[nodiscard]] bool is_over() const { return all_posted_ && in_flight_ == 0; }
    /// In the flight record, of one that is not over when its post returns: others get there with
    /// their end, as one record takes half the time of two.
    void record();
    /// Instead: nothing of it was posted. Its memory is not used.
    void refuse(const Status& status);
    /// Once it is over. Its memory is not used any more.
    void finish(const runtime::SessionPath& path);

   private:
    [[nodiscard]] runtime::SessionTransfer entry() const;

    const TransferArgs args_;
    const std::shared_ptr<Connection> connection_;
    const std::uint64_t bytes_;
    const TimePoint begun_;
    const std::uint32_t pair_;
    std::uint64_t number_ = 0;  // in the flight record; 0: it is not there
    Plan::PlanCursor cursor_{};
    bool may_begin_;
    std::uint64_t in_flight_ = 0;  // posts
    bool all_posted_ = false;
    Status failure_;
    std::atomic<std::uint64_t> pieces_{0};
    std::atomic<bool> given_up_{false};
    bool refused_ = false;  // once done_
    Status status_;         // once done_
    TimePoint ended_{};     // once done_
    std::atomic<bool> done_{false};
};

}  // namespace pccl::p2p
