// How this rank fares in its group, as it tells those who ask: other ranks, other groups of this
// process, its own diagnosis.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/scope_exit.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/comm/diagnosis/shrinking.h"
#include "csrc/comm/diagnosis/switching.h"
#include "csrc/runtime/visible_group.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::comm {

/// Why a group is to end, before it does: found out by other groups of the process, or told.
struct Heard {
    transport::StickyStatus why{};
    std::atomic<Rank> from{kNoRank};  // the first that has told
};

/// From any thread. Nothing here waits longer than 20 ms for the group's lock: what lies behind it
/// is missing then, and the answer says so.
class SelfReport final : public runtime::VisibleGroup {
   public:
    /// Both outlive it.
    SelfReport(const DiagnosisSubject& subject, const Heard& heard)
        : subject_(subject), heard_(heard) {}

    [[nodiscard]] RankStatus rank_status() const;
    /// With what its GPU waits in.
    [[nodiscard]] RankStatus whole_rank_status() const;
    /// The same with its latest collectives and what its process waits for in other groups: a
    /// RankStatus as `asker` parses it, which knows then how phases were switched.
    [[nodiscard]] std::string answer(Rank asker);
    /// The collective that a thread of the user waits for in this group; no operation: none.
    [[nodiscard]] OtherGroupWait blocked_in() const;

    /// Of a thread of the user that waits for the group, until the value's end.
    [[nodiscard]] auto note_waiter() {
        waiting_.fetch_add(1, std::memory_order_relaxed);
        return ScopeExit([this] { waiting_.fetch_sub(1, std::memory_order_relaxed); });
    }
    [[nodiscard]] bool has_waiter() const { return waiting_.load() > 0; }

    // For onlookers:

    [[nodiscard]] const transport::GroupId& id() const override {
        return subject_.peers.directory().identity().group;
    }
    [[nodiscard]] std::uint32_t flight_group() const override { return subject_.flight_group; }
    [[nodiscard]] Standing standing() const override;
    [[nodiscard]] std::vector<bootstrap::Endpoint> members(Rank first,
                                                           std::size_t most) const override;

    [[nodiscard]] ShrinkState& shrinking() { return shrinking_; }
    [[nodiscard]] const ShrinkState& shrinking() const { return shrinking_; }
    [[nodiscard]] SwitchState& switching() { return switching_; }

   private:
    const DiagnosisSubject& subject_;
    const Heard& heard_;
    std::atomic<int> waiting_{0};
    ShrinkState shrinking_;
    SwitchState switching_;
};

}  // namespace pccl::comm
