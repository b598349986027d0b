// SPDX-License-Identifier: Apache-2.0

// One rank's part in a switch of phases: a two-phase commit with rank 0 as its coordinator. Ranks
// send requests over the control plane, which no switch of the data plane affects.
//
//     others                                       rank 0, the controller
//     kCalled  drains                              kCalled  the transaction prepares all switches
//                                                           drains
//     kReady   requests the result from rank 0     kReady   polls the others until all are ready
//                                                           commits, waits for light, reads,
//                                                           confirms
//     kDone    acts on the result                  kDone    publishes it; polls until all have it
//
// A ready rank may give up only while rank 0 has not called: it publishes that first, and then
// sends one more request. So either rank 0 detects it before anything is switched, or the rank
// finds that rank 0 has called, and receives the result from it, even if other ranks are gone. If
// rank 0 is gone, its successor sends the result (coordinator_failover.h). Calls are numbered
// equally on all ranks; a rank that calls after rank 0 has given up a number receives the reason.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/comm/phase/coordinator_failover.h"
#include "csrc/comm/phase/phase_talk.h"

namespace pccl::comm {

struct PhaseCallOptions {
    PhasedGroup& group;  // the group of all ranks
    /// Groups of this process, `group` among them: all of them drain.
    std::vector<std::shared_ptr<PhasedGroup>> groups;
    std::string proposal;
    std::uint64_t phases = 0;
    Status own{};                           // why this rank rejects the switch
    Deadline deadline = Deadline::never();  // until which all ranks must have called and drained
    Duration answer_timeout{};              // for a rank that does not answer
    ReadBack read_back{};                   // null: this rank cannot read switches
};

class PhaseCall {
   public:
    explicit PhaseCall(PhaseCallOptions options);

    /// Returns the result, on a rank other than 0. Errors: kTimeout if rank 0 has not called, or
    /// operations stay in flight; kPeerLost, kMismatch; kAborted if this thread is interrupted.
    [[nodiscard]] Result<Switching::SwitchResult> participate();

    // Rank 0 calls these functions:

    /// Waits until all ranks are ready. Errors name the ranks that are not, and their state.
    [[nodiscard]] Status gather();
    /// Publishes the result, and waits until all ranks that have called have it, or are gone.
    void publish_result(Switching::SwitchResult switch_result);

   private:
    using Stage = Switching::Stage;

    /// Waits until no operation is in flight here.
    [[nodiscard]] Status drain();
    [[nodiscard]] Status drain_once(std::string& under_way);
    [[nodiscard]] Result<Switching::SwitchResult> await_result();
    [[nodiscard]] Status leave(const Status& why);
    [[nodiscard]] Result<Switching::SwitchResult> go_on_without_controller(const Status& lost);
    [[nodiscard]] bool has_controller() const;
    /// Returns why this rank stops waiting for a controller that has not called; ok: there is no
    /// reason yet.
    [[nodiscard]] Status why_leave(const Status& own) const;
    /// Requests the status of `ranks`; removes ready ranks from `missing`.
    [[nodiscard]] Status receive_from(const std::vector<Rank>& ranks, std::vector<Rank>& missing);
    [[nodiscard]] Result<bool> is_ready(Rank rank) const;
    /// Returns an error if the rank has given up this number and waits for another. Numbers that
    /// others have given up are given up here, too.
    [[nodiscard]] Status catch_up(Rank rank);
    [[nodiscard]] Status compare_progress() const;
    /// Returns why the switch can no longer succeed, by the result of a request to this rank: a
    /// rank is gone, or its group or the one here has ended.
    [[nodiscard]] Status why_over(Rank rank, const Status& queried) const;
    [[nodiscard]] Status timed_out(const std::vector<Rank>& missing) const;
    [[nodiscard]] Status out_of_order(Rank rank) const;
    [[nodiscard]] const RankStatus& status_of(Rank rank) const { return talk_.status_of(rank); }
    [[nodiscard]] std::uint64_t number() const { return talk_.own().number; }

    const PhaseCallOptions options_;
    PhaseTalk talk_;
    std::uint64_t collectives_ = 0;  // of the group
    bool was_ready_ = false;         // stays set: rank 0 may rely on it permanently
};

}  // namespace pccl::comm
