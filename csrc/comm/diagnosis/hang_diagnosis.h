// SPDX-License-Identifier: Apache-2.0

// Diagnosis of a stalled group: it checks peers, requests their status, walks the wait-for graph,
// and ends the group with the reason. diagnosis_timing.h draws the states.
//
// Threads that wait for the group call look_around() and on_deadline(); the acceptor calls
// receive_reason() and SelfReport::answer(). Requests to other ranks are made without the group's
// lock, except by reconsidered(), which ends the group.
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/abi/wire.h"
#include "csrc/base/log/wait_notice.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/group_probe.h"
#include "csrc/comm/diagnosis/peer_survey.h"
#include "csrc/comm/diagnosis/self_report.h"

namespace pccl::comm {

class HangDiagnosis {
   public:
    explicit HangDiagnosis(const DiagnosisSubject& subject);

    // These are thread-safe and must be called without the group's lock:

    /// Checks peers. A waiting thread calls it from time to time when nothing has moved for `idle`.
    void look_around(Duration idle);
    /// Finds the rank to blame and ends the group, after the deadline of the collective at the
    /// front has passed.
    void on_deadline();
    /// Notifies the ranks of note_unnotified() for a limited time (they detect the end themselves
    /// later), and writes the flight record of a failure. The thread that has ended the group must
    /// call it once.
    void report_end() const;
    /// Records the reason why a rank has left.
    void receive_reason(Rank from, const Status& reason);
    /// Sets the reason with which the group ends at its next step; the first reason wins.
    void conclude(const Status& why) { static_cast<void>(received_.why.set(why)); }
    [[nodiscard]] bool has_received_reason() const { return received_.why.is_set(); }
    /// Requires has_received_reason().
    [[nodiscard]] Status received_reason() const { return received_.why.get(); }

    [[nodiscard]] SelfReport& report() { return report_; }
    [[nodiscard]] const SelfReport& report() const { return report_; }
    [[nodiscard]] const PeerSurvey& survey() const { return survey_; }
    [[nodiscard]] GroupProbe& group_probe() { return group_probe_; }

    // These require the lock:

    /// Stores the ranks that no link or segment notifies of the group's end.
    void note_unnotified(std::vector<Rank> ranks) { unnotified_ = std::move(ranks); }
    /// Returns the status with which the group must end: a rank that has left is requested for its
    /// complete reason, which may blame another rank. `latest` is the latest collective here. Takes
    /// at most DiagnosisTiming::second_opinion, plus last_words if no link to the rank existed yet.
    /// ok means that the group continues, because the link of a rank that seemed lost has arrived.
    [[nodiscard]] Status reconsidered(const Status& cause, const abi::CollectiveHeader& latest);
    /// Returns kMismatch if ranks are found to have called a different collective than `latest`.
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader& latest);
    /// Returns `late`, an error about a rank that does not join, or the error about the rank that
    /// it waits for.
    [[nodiscard]] Status timeout_cause(const Status& late) const;

   private:
    /// Checks whether an awaited rank is gone or any rank has left because of a failure. The kernel
    /// reports both within milliseconds.
    void look_at_awaited();
    /// Requests the status of awaited ranks, which covers failures that no link shows.
    void query_awaited();
    void log_awaited_ranks(Duration idle) const;
    /// Returns the finding of an `answer`: the rank has left, or waits for something else.
    [[nodiscard]] Status judge(Rank rank, const Result<RankStatus>& answer);
    /// Returns whether the ranks are out of order now and were so in the previous answer. The first
    /// answer may come from a rank between two operations, or from one that continues after an
    /// error.
    bool stays_out_of_order(const Stall& stall, const RankStatus& answer);
    /// Ends the other one of two groups that are used in different orders, too.
    void fail_crossed(const Stall& stall, const OtherGroupWait& there);
    /// Returns the collective at the front if its deadline has passed.
    [[nodiscard]] std::optional<Stall> timed_out_stall() const;
    /// Returns whether all actions of a rank are visible here. When links are in use, one from that
    /// rank must exist; it may arrive after the rank has left.
    [[nodiscard]] bool shows_all_of(Rank rank) const;
    /// Returns why `reporter`, which is gone, has left: by a link or by a notice. When no link to
    /// this rank existed yet, either may still be in flight.
    [[nodiscard]] Status last_words_of(Rank reporter);
    /// Returns the stalled collective, or one without a number if there is none.
    [[nodiscard]] Stall stall_or_none() const;
    [[nodiscard]] Deadline within(Duration longest) const {
        return Deadline::after(longest).unless(subject_.group.aborted());
    }

    const DiagnosisSubject subject_;
    ReceivedReason received_;  // set by the acceptor, or by the first step of a call
    SelfReport report_;
    PeerSurvey survey_;
    DiagnosedGroupProbe group_probe_;
    std::atomic<bool> inquiring_{false};  // a thread is requesting the status of other ranks
    /// Collectives of other groups; used by the inquiring thread.
    std::set<std::string> seen_out_of_order_;
    std::atomic<TimePoint> looked_{};
    std::atomic<TimePoint> queried_at_{};
    WaitNotice notice_;
    std::vector<Rank> unnotified_;  // used by the thread that ends the group
};

}  // namespace pccl::comm
