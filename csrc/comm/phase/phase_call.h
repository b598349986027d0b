// One rank's part in a switch of phases: a two-phase commit, with rank 0 as its coordinator. Ranks
// ask each other over the control plane, which no switch of the data plane touches.
//
//     others                                       rank 0, the controller
//     kCalled  drains                              kCalled  the transaction prepares all switches
//     kReady   asks rank 0 how it ended            drains; asks the others until all are ready
//                                                  commits, settles, reads, confirms
//     kDone    does as the result says             kDone    tells the result; asks until all know
//
// A rank that is ready may give up only while rank 0 has not called: it says so first, and asks
// then. So either rank 0 finds out before anything is switched, or the rank finds that rank 0 is
// there, and hears from it how it ended, whoever else is gone; if rank 0 goes, from its successor
// (coordinator_failover.h). Calls are numbered, alike on all ranks; who comes when rank 0 has given
// a number up hears why.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/comm/phase/coordinator_failover.h"
#include "csrc/comm/phase/phase_talk.h"

namespace pccl::comm {

struct PhaseCallOptions {
    PhasedGroup& group;  // of all ranks
    /// Of this process, `group` among them: all of them drain.
    std::vector<std::shared_ptr<PhasedGroup>> groups;
    std::string proposal;
    std::uint64_t phases = 0;
    Status own{};                           // why this rank does not want it
    Deadline deadline = Deadline::never();  // for all to come, with nothing under way
    Duration answer_timeout{};              // with a rank that does not answer
    ReadBack read_back{};                   // null: no switch can be read here
};

class PhaseCall {
   public:
    explicit PhaseCall(PhaseCallOptions options);

    /// Of a rank other than 0: how it ended. Errors: kTimeout, where rank 0 has not come, or
    /// something stays under way; kPeerLost, kMismatch; kAborted, where this thread is interrupted.
    [[nodiscard]] Result<Switching::SwitchResult> follow();

    // Of rank 0:

    /// Waits until all ranks are ready. Errors name those that are not, and what they do.
    [[nodiscard]] Status gather();
    /// Tells how it ended, and waits until all who have called know, or are gone.
    void tell(Switching::SwitchResult switch_result);

   private:
    using Stage = Switching::Stage;

    /// Until nothing is under way here.
    [[nodiscard]] Status drain();
    [[nodiscard]] Status drain_once(std::string& under_way);
    [[nodiscard]] Result<Switching::SwitchResult> await_result();
    [[nodiscard]] Status leave(const Status& why);
    [[nodiscard]] Result<Switching::SwitchResult> go_on_without_controller(const Status& lost);
    [[nodiscard]] bool has_controller() const;
    /// Why not to wait for a controller that has not called; ok: there is no reason yet.
    [[nodiscard]] Status why_leave(const Status& own) const;
    /// Asks these; who is ready is missing no more.
    [[nodiscard]] Status hear_from(const std::vector<Rank>& ranks, std::vector<Rank>& missing);
    [[nodiscard]] Result<bool> is_ready(Rank rank) const;
    /// Not ok where the rank has given this number up, and waits for another: numbers that others
    /// have given up are given up here, too.
    [[nodiscard]] Status catch_up(Rank rank);
    [[nodiscard]] Status compare_progress() const;
    /// Why nothing comes of it any more, by what came of asking this rank: who is gone, or the end
    /// of its group, or of the one here.
    [[nodiscard]] Status why_over(Rank rank, const Status& asked) const;
    [[nodiscard]] Status timed_out(const std::vector<Rank>& missing) const;
    [[nodiscard]] Status out_of_order(Rank rank) const;
    [[nodiscard]] const RankStatus& told_by(Rank rank) const { return talk_.told_by(rank); }
    [[nodiscard]] std::uint64_t number() const { return talk_.own().number; }

    const PhaseCallOptions options_;
    PhaseTalk talk_;
    std::uint64_t collectives_ = 0;  // of the group
    bool was_ready_ = false;         // once: rank 0 may go by that for good
};

}  // namespace pccl::comm
