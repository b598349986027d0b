// What ranks say to one another while phases are switched: each shows how far it is, and asks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/comm/phase/phased_group.h"

namespace pccl::comm {

/// Between two questions to the same ranks: longer each time, but only until a rank asks here, by
/// which it says that it has news. Made before the first question.
class AskingPause {
   public:
    AskingPause();
    /// For ranks that are sure to ask here once they have news: as long as can be from the start.
    static AskingPause until_rung();
    void rest();

   private:
    explicit AskingPause(Duration first);

    std::uint64_t rings_;  // of the bell, before the last question
    Duration next_;
};

class PhaseTalk {
   public:
    using Stage = Switching::Stage;

    /// `answer_timeout`: with a rank that does not answer.
    PhaseTalk(PhasedGroup& group, Duration answer_timeout);

    [[nodiscard]] PhasedGroup& group() const { return group_; }
    /// What say() shows.
    [[nodiscard]] Switching& own() { return own_; }
    [[nodiscard]] const Switching& own() const { return own_; }
    void say(Stage stage);

    /// Asks, and remembers the answer. ok, too, where the rank is silent for now; kPeerLost where
    /// it is gone, kTimeout where it has been silent for too long.
    [[nodiscard]] Status ask(Rank rank);
    /// The same of several, some at a time: what came of each.
    [[nodiscard]] std::vector<Status> ask_all(const std::vector<Rank>& ranks);
    /// Those that have asked here since they were asked: they say by it that they have news.
    [[nodiscard]] std::vector<Rank> with_news(const std::vector<Rank>& ranks) const;
    /// As it last answered.
    [[nodiscard]] const RankStatus& told_by(Rank rank) const {
        return told_[static_cast<std::size_t>(rank)];
    }
    /// Whether it has shown how this switch ended.
    [[nodiscard]] bool has_result(Rank rank) const;
    /// All ranks but rank 0 and this one.
    [[nodiscard]] std::vector<Rank> others() const;

    /// Shows how it ended, and waits until all others that have called know, or are gone.
    void tell(Switching::SwitchResult switch_result);

   private:
    [[nodiscard]] bool is_told(Rank rank) const;
    /// Leaves those that are not.
    void await_told(std::vector<Rank>& untold, Deadline until) const;

    PhasedGroup& group_;
    const Duration answer_timeout_;
    Switching own_;
    std::vector<RankStatus> told_;  // by rank
    std::vector<TimePoint> answered_;
    std::vector<std::uint64_t> heard_;  // of each rank: its questions, before it was last asked
};

}  // namespace pccl::comm
