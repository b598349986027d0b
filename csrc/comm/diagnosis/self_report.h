// SPDX-License-Identifier: Apache-2.0

// Status of this rank in its group for requests by other ranks, by other groups of this process,
// and by its own diagnosis.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/scope_exit.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/comm/diagnosis/shrinking.h"
#include "csrc/comm/diagnosis/switching.h"
#include "csrc/runtime/participant.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::comm {

/// Wakeup of threads that pause between status requests: a request from another rank, which
/// SelfReport::answer() answers, means that it may have news.
class QueryBell {
   public:
    void ring();
    [[nodiscard]] std::uint64_t rings() const;
    /// Waits until it has rung more often than `rings`, at most for `longest`.
    void rest(std::uint64_t rings, Duration longest);

   private:
    mutable std::mutex mutex_;
    std::condition_variable rung_;
    std::uint64_t rings_ = 0;
};

/// Returns the bell of all groups of this process. A superfluous request costs little, and requests
/// are few.
[[nodiscard]] QueryBell& query_bell();

/// Reason with which a group is going to end: found by other groups of the process, or received.
struct ReceivedReason {
    transport::StickyStatus why{};
    std::atomic<Rank> from{kNoRank};  // first sender of a reason
};

/// Thread-safe. No function waits longer than 20 ms for the group's lock: guarded fields are
/// missing then, and the answer is marked as incomplete.
class SelfReport final : public runtime::VisibleGroup {
   public:
    /// Keeps references to both, which must outlive it.
    SelfReport(const DiagnosisSubject& subject, const ReceivedReason& received_reason)
        : subject_(subject), received_(received_reason) {}

    [[nodiscard]] RankStatus rank_status() const;
    /// Adds the operation in which its GPU waits.
    [[nodiscard]] RankStatus whole_rank_status() const;
    /// Adds its latest collectives and the waits of its process in other groups. Returns a
    /// serialised RankStatus for `asker`, and records that `asker` has received the result of the
    /// phase switch.
    [[nodiscard]] std::string answer(Rank asker);
    /// Returns the collective that a user's thread waits for in this group. It has no operation if
    /// there is none.
    [[nodiscard]] OtherGroupWait blocked_in() const;

    /// Counts a user's thread that waits for the group, until the returned value is destroyed.
    [[nodiscard]] auto note_waiter() {
        waiting_.fetch_add(1, std::memory_order_relaxed);
        return ScopeExit([this] { waiting_.fetch_sub(1, std::memory_order_relaxed); });
    }
    [[nodiscard]] bool has_waiter() const { return waiting_.load() > 0; }

    // These implement VisibleGroup:

    [[nodiscard]] const transport::GroupId& id() const override {
        return subject_.peers.directory().identity().group;
    }
    [[nodiscard]] std::uint32_t flight_group() const override { return subject_.flight_group; }
    [[nodiscard]] Standing standing() const override;
    [[nodiscard]] runtime::UsageSnapshot usage(std::size_t most) const override;
    [[nodiscard]] std::vector<runtime::UsageWindow> history(
        std::chrono::seconds from) const override;
    [[nodiscard]] std::vector<bootstrap::Endpoint> members(Rank first,
                                                           std::size_t most) const override;

    [[nodiscard]] ShrinkState& shrinking() { return shrinking_; }
    [[nodiscard]] const ShrinkState& shrinking() const { return shrinking_; }
    [[nodiscard]] SwitchState& switching() { return switching_; }

   private:
    const DiagnosisSubject& subject_;
    const ReceivedReason& received_;
    std::atomic<int> waiting_{0};
    ShrinkState shrinking_;
    SwitchState switching_;
};

}  // namespace pccl::comm
