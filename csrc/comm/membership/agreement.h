// How the ranks that stay in a smaller group agree on it: all of them go on with one list of ranks,
// or none does.
//
//     Agreement agreement({...});
//     identity = agreement.propose();     all who stay want the same list
//     (make the group, enrol it, and whatever else may fail here)
//     agreement.confirm();                all have come this far; this rank goes on
//
// A commit among exactly those who stay, who all confirm the list before any of them goes on. Each
// tells how far it is to whoever asks, over connections that prove the old group's secret, and asks
// all others; nobody leads, and no store is needed. A rank goes on when all have confirmed, or when
// it hears of one that has gone on. Until then it may give up, and call shrink again: with the same
// list, or a part of it, never with a rank that it has once confirmed to leave out.
//
// Why at most one side of a group that falls apart goes on: lists hold more than half of the group,
// or half with its rank 0 (quorum.h), so any two have a rank in common, and by the rule above
// one is a part of the other. Who goes on with the longer one, not knowing that the others have
// given up on it, is fewer than half of it, and so gets no further: neither an operation nor
// another shrink succeeds. (Dynamic linear voting: Jajodia and Mutchler, "Dynamic voting algorithms
// for maintaining the consistency of a replicated database", ACM TODS 15(2), 1990.)
//
// What no protocol can rule out (two generals) is just that: a rank that dies or is cut off after
// it has confirmed. The others may go on with it, and find it lost at their next operation.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/comm/diagnosis/shrinking.h"
#include "csrc/comm/diagnosis/wait_for_graph.h"

namespace pccl::comm {

struct AgreementOptions {
    Rank self = 0;
    bootstrap::GroupIdentity old{};
    std::vector<Rank> staying{};   // of the old group, in order; `self` is one of them
    std::vector<Rank> left_out{};  // the others
    std::string terms{};           // of the smaller group, that all must have alike, too
    Ask ask{};                     // how a rank fares in the old group
    std::function<void(const Shrinking&)> tell{};  // what this rank answers from now on
    std::function<Status()> interrupted{};         // asked between looks; may be empty
    Deadline deadline = Deadline::never();
    Duration answer_timeout = std::chrono::seconds(10);  // with a rank that does not answer
    Duration doubt = std::chrono::seconds(2);  // before a rank that has confirmed gives up
};

class PCCL_API Agreement {
   public:
    explicit Agreement(AgreementOptions options);
    /// Unless this rank has gone on, it no longer shrinks the group.
    ~Agreement();
    Agreement(const Agreement&) = delete;
    Agreement& operator=(const Agreement&) = delete;

    // Errors: kTimeout names a rank that has not come, kMismatch one with another list, kPeerLost
    // one that is gone; kUnavailable where others have gone on without this rank.

    /// Returns when all who stay propose the same: the identity of the smaller group, which only
    /// they can derive.
    [[nodiscard]] Result<bootstrap::GroupIdentity> propose();
    // False where one has given up meanwhile: propose() again, which waits for its next call.

    /// Where ranks need each other's help to make the group: this one takes connections of it.
    /// Returns when all do.
    [[nodiscard]] Result<bool> await_ready();
    /// To be called when nothing else can fail. True: this rank has gone on, and says so.
    [[nodiscard]] Result<bool> confirm();

   private:
    using Stage = Shrinking::Stage;
    struct Peer {
        Rank rank = 0;
        Shrinking said{};
        TimePoint asked{};
        TimePoint answered{};
        std::string silence{};  // why the last question had no answer
    };

    void tell(Stage stage);
    [[nodiscard]] Result<bool> gather(Stage stage);
    [[nodiscard]] Peer* next_to_ask(Stage stage);
    [[nodiscard]] Duration fresh() const;
    [[nodiscard]] Status look_at(Peer& peer);
    [[nodiscard]] Status judge(const Peer& peer) const;
    [[nodiscard]] Status let_see(Status found) const;
    [[nodiscard]] std::string differs(const Peer& peer) const;
    [[nodiscard]] bool has_our_pact(const Shrinking& said) const;
    [[nodiscard]] bool is_here(const Peer& peer, Stage stage) const;
    [[nodiscard]] bool has_given_up(const Peer& peer) const;
    [[nodiscard]] bool has_gone_on(const Shrinking& said) const;
    [[nodiscard]] bool others_have_gone_on(Rank lost);
    [[nodiscard]] Status has_not_come(const Peer& peer) const;

    const AgreementOptions options_;
    const TimePoint begun_;
    Shrinking own_;
    std::vector<Peer> peers_;
    std::map<Rank, Shrinking::Call> calls_;  // of all who stay, that the pact counts on
};

}  // namespace pccl::comm
