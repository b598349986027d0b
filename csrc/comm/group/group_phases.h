// SPDX-License-Identifier: Apache-2.0

// Phase switches of a group of this process: the group is on hold during a switch, then continues
// with other links.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/hang_diagnosis.h"
#include "csrc/comm/group/collective_queue.h"
#include "csrc/comm/group/mailbox.h"
#include "csrc/comm/group/peers.h"
#include "csrc/comm/phase/phased_group.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/transport/doorbell.h"

namespace pccl::comm {

class GroupPhases final : public PhasedGroup {
   public:
    /// Members of one group; all outlive this object.
    struct Parts {
        DiagnosedGroup& group;
        Peers& peers;
        HangDiagnosis& diagnosis;
        std::optional<Selector>& selector;
        Mailbox& mailbox;
        CollectiveQueue& collectives;
        transport::Waiter& waiter;
    };
    explicit GroupPhases(const Parts& parts) : parts_(parts) {}

    // The group calls these under its lock:

    /// Waits while the group is on hold, with `lock` released: kTimeout after `longest`.
    [[nodiscard]] Status await_release(std::unique_lock<std::mutex>& lock,
                                       std::chrono::milliseconds longest) {
        return is_on_hold_ ? wait(lock, longest) : Status::ok();
    }
    /// Returns the reason why no collective can run in this phase, or ok.
    [[nodiscard]] const Status& unusable() const { return phase_.unusable; }
    /// Returns kUnsupported if this phase has no link for the message.
    [[nodiscard]] Status check_link(const MessageOperation::Envelope& envelope) const;
    /// Returns why the last switch failed, if ranks disagreed and no collective was called since.
    [[nodiscard]] Status disagreement() const;
    /// Returns whether some ranks had not called that switch, and may not have been notified of it.
    [[nodiscard]] bool is_disagreement_news() const;

    // A switch calls these:

    [[nodiscard]] Rank rank() const override { return parts_.peers.directory().rank(); }
    [[nodiscard]] int size() const override { return parts_.peers.directory().size(); }
    [[nodiscard]] const std::string& name() const override {
        return parts_.peers.directory().group_name();
    }
    [[nodiscard]] bool share_memory(Rank one, Rank other) const override;
    [[nodiscard]] Status check_reverse_route(Rank source, bool is_fixed) const override;
    void hold() override;
    void release() override;
    [[nodiscard]] Result<bool> drain() override;
    [[nodiscard]] std::string under_way() const override;
    [[nodiscard]] Switching::GroupProgress progress() const override;
    void enter(GroupPhase phase) override;
    [[nodiscard]] Result<RankStatus> query(Rank rank, Deadline deadline) const override {
        return parts_.diagnosis.survey().query(rank, deadline);
    }
    [[nodiscard]] SwitchState& switching() override {
        return parts_.diagnosis.report().switching();
    }
    [[nodiscard]] Status check_interrupt() const override { return parts_.group.check_interrupt(); }
    [[nodiscard]] Status health() const override { return parts_.group.health(); }
    void end(const Status& why) override { parts_.group.end(why); }
    void note_ended_switch(const Status& why) override;

   private:
    struct Disagreement {
        Status why{};
        std::uint64_t collectives = 0;  // number of collectives called before it
    };
    Status wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds longest);

    const Parts parts_;
    bool is_on_hold_ = false;  // guarded by the group's lock, as phase_ is
    GroupPhase phase_;
    Disagreement disagreement_;
};

}  // namespace pccl::comm
