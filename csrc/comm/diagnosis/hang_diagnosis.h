// Who is to blame when a group does not go on: looks at peers, asks them, follows who waits for
// whom, and ends the group with the reason. diagnosis_timing.h draws the states on that way.
//
// Threads that wait for the group call look_around() and on_deadline(), the acceptor hear() and
// SelfReport::answer(). Whatever asks another rank does so without the group's lock; but for
// reconsidered(), which ends it.
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/base/clock.h"
#include "csrc/base/wait_notice.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/group_probe.h"
#include "csrc/comm/diagnosis/peer_survey.h"
#include "csrc/comm/diagnosis/self_report.h"

namespace pccl::comm {

class HangDiagnosis {
   public:
    explicit HangDiagnosis(const DiagnosisSubject& subject);

    // From any thread, without the group's lock:

    /// To be called now and then by a thread that has waited for `idle` and seen nothing move.
    void look_around(Duration idle);
    /// Once the deadline of the collective at the front has passed: finds out who is to blame, and
    /// ends it.
    void on_deadline();
    /// Tells those whom note_untold() has noted, for a moment, then they find out by themselves;
    /// writes the flight record of a failure. To be called once, by whoever has ended the group.
    void tell_end() const;
    /// A rank tells why it has left.
    void hear(Rank from, const Status& reason);
    /// Why the group is to end, at its next step; the first reason stays.
    void conclude(const Status& why) { static_cast<void>(heard_.why.set(why)); }
    [[nodiscard]] bool has_heard() const { return heard_.why.is_set(); }
    /// Once has_heard().
    [[nodiscard]] Status heard() const { return heard_.why.get(); }

    [[nodiscard]] SelfReport& report() { return report_; }
    [[nodiscard]] const SelfReport& report() const { return report_; }
    [[nodiscard]] const PeerSurvey& survey() const { return survey_; }
    [[nodiscard]] GroupProbe& group_probe() { return group_probe_; }

    // Under the lock:

    /// The group is over, which no link or segment tells these ranks.
    void note_untold(std::vector<Rank> ranks) { untold_ = std::move(ranks); }
    /// What to end the group with: a rank that has left says more when it is asked, the whole
    /// reason, and that another is lost. `latest` is the latest collective here. Takes at most
    /// DiagnosisTiming::second_opinion, and last_words where no link to the rank was there yet. ok:
    /// it goes on, as the link of a rank that seemed lost has come meanwhile.
    [[nodiscard]] Status reconsidered(const Status& cause, const abi::CollectiveHeader& latest);
    /// kMismatch where ranks have called different collectives, `latest` here, as far as that shows
    /// by now.
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader& latest);
    /// `late`, about a rank that does not join: or whom that one waits for.
    [[nodiscard]] Status timeout_cause(const Status& late) const;

   private:
    /// Whether a rank that is waited for is gone, or any has left because of a failure: what the
    /// kernel knows within milliseconds.
    void look_at_awaited();
    /// The same by asking these ranks, which shows what no link does.
    void ask_awaited();
    void say_whom_it_awaits(Duration idle) const;
    /// What `answer` shows: that the rank has left, or waits for something else.
    [[nodiscard]] Status judge(Rank rank, const Result<RankStatus>& answer);
    /// Whether it is so, and was so when last asked: the first question may have met a rank on its
    /// way from one to the other, or one that goes on after an error.
    bool stays_out_of_order(const Stall& stall, const RankStatus& answer);
    /// Ends the other of two groups that are used in different orders, too.
    void fail_crossed(const Stall& stall, const OtherGroupWait& there);
    /// Of the collective at the front, where its deadline has passed.
    [[nodiscard]] std::optional<Stall> timed_out_stall() const;
    /// Whether all that a rank has done shows here: where links are used, one from it must be
    /// there, which may come after the rank has left.
    [[nodiscard]] bool shows_all_of(Rank rank) const;
    /// Why `reporter`, which is gone, has left: over a link, or told. Where no link to here was
    /// there yet, either may still be on its way.
    [[nodiscard]] Status last_words_of(Rank reporter);
    /// Without a collective: one of no number.
    [[nodiscard]] Stall stall_or_none() const;
    [[nodiscard]] Deadline within(Duration longest) const {
        return Deadline::after(longest).unless(subject_.group.aborted());
    }

    const DiagnosisSubject subject_;
    Heard heard_;  // from the acceptor, or a call's first step
    SelfReport report_;
    PeerSurvey survey_;
    DiagnosedGroupProbe group_probe_;
    std::atomic<bool> inquiring_{false};       // some thread asks other ranks
    std::set<std::string> seen_out_of_order_;  // collectives of other groups; of who asks
    std::atomic<TimePoint> looked_{};
    std::atomic<TimePoint> asked_{};
    WaitNotice notice_;
    std::vector<Rank> untold_;  // of whoever ends the group
};

}  // namespace pccl::comm
