// Chooses the algorithm and the cut of a collective, alike on every rank.
//
// The choice is a pure function of what all ranks know: the roster, the collective, and the lengths
// of blocks that every rank sees. Where ranks see different lengths (all_to_all, gather, scatter)
// it depends on the group alone. Choices are cached: a repeated call costs one comparison.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/collective/prediction.h"
#include "csrc/comm/board/board.h"
#include "csrc/comm/board/board_cost.h"
#include "csrc/comm/links/plan.h"
#include "csrc/comm/selection/link_costs.h"
#include "csrc/comm/selection/tuning.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/simulator/link_model.h"

namespace pccl::comm {

/// By a schedule over links, or, where `plan` is null, over the board.
struct Choice {
    std::string_view name;  // of the schedule, or of the board's algorithm
    std::shared_ptr<const Plan> plan;
    Cut cut;
    BoardPlan on_board;
    abi::CollectiveHeader header{};  // without its sequence number
};

/// What comes before the cost model; the same on all ranks.
struct Preferences {
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in();
    std::string wanted;  // by the user: "all_reduce=ring,all_gather=bruck"
    Tuning tuning;       // of boards
    costs::MachineCosts costs;
};

/// Of each block of a collective whose largest buffer has `bytes`.
[[nodiscard]] PCCL_API std::size_t block_bytes(CollectiveKind kind, std::size_t bytes, int ranks);

class Selector {
   public:
    struct Place {
        Rank rank = 0;
        const Board* board = nullptr;  // null in groups that have none
        std::shared_ptr<const bootstrap::Layout> layout;
    };
    Selector(const bootstrap::Roster& roster, Place place, Preferences preferences);

    /// The same of a group that may exist nowhere.
    struct Setting {
        Rank rank = 0;
        Reach reach;
        std::optional<BoardShape> board;
        std::shared_ptr<const bootstrap::Layout> layout;
    };
    Selector(Setting setting, Preferences preferences);

    /// Valid until the next call. kInvalidArgument names an algorithm that was wanted and does not
    /// fit.
    Result<const Choice*> choose(const Collective& collective);

    struct LinkCall {
        CollectiveKind kind = CollectiveKind::kAllReduce;
        std::size_t element_bytes = 1;
        std::size_t count = 0;   // of the longest block, as far as all ranks know it
        bool is_uneven = false;  // blocks differ in length
        Rank root = 0;
        std::string_view wanted{};  // by the user; empty: the choice is free
    };
    struct Candidate {
        schedule::SourcePtr source;
        int aggregation = 0;  // of its shape, where it has a choice: what takes the least time
        double seconds = 0;   // predicted
        std::string busiest;  // link, where one is shared
    };
    /// Chooses from `catalogue` from now on.
    void choose_from(std::shared_ptr<const schedule::Catalogue> catalogue);

    /// Every algorithm that can make the call over links, best first.
    [[nodiscard]] std::vector<Candidate> candidates(const LinkCall& call);
    [[nodiscard]] const bootstrap::Layout& layout() const { return *layout_; }

    /// Every way to make a collective of uint8 blocks of equal length, as choose() orders them: the
    /// board's before those over links, each best first.
    [[nodiscard]] Result<std::vector<Prediction>> explain(CollectiveKind kind,
                                                          std::size_t block_bytes);

   private:
    struct Entry {
        bool decided = false;
        Signature signature{};
        std::string wanted;  // by the call alone
        Choice choice;
    };

    /// `wanted`: by the user; empty where the choice is free.
    Result<Choice> decide(const Signature& signature, std::string_view wanted);
    /// nullopt where a schedule is wanted, or there is no board.
    std::optional<Choice> decide_on_board(const Signature& signature,
                                          std::string_view wanted) const;
    Result<Choice> decide_on_links(const Signature& signature, const LinkCall& call);
    [[nodiscard]] LinkCall link_call(const Signature& signature, std::string_view wanted) const;
    /// The schedule that was loaded for calls of this size; null where there is none that can make
    /// it. Ranks that know different sizes have none.
    [[nodiscard]] schedule::SourcePtr loaded_for(const Signature& signature) const;
    Result<std::shared_ptr<const Plan>> plan(const schedule::SourcePtr& source,
                                             const schedule::Shape& shape);
    [[nodiscard]] Result<Candidate> candidate_for(const LinkCall& call);
    /// Why a schedule that is there cannot make the call.
    [[nodiscard]] std::string why_not(const LinkCall& call) const;
    /// The schedule that the user wants for a collective of which only pairs know the lengths,
    /// though it passes blocks through other ranks; else null.
    [[nodiscard]] schedule::SourcePtr relaying(CollectiveKind kind, std::string_view wanted) const;
    /// Whether it can make the call at all.
    [[nodiscard]] bool suits(const schedule::ScheduleSource& source, const LinkCall& call) const;
    /// ... and with messages of as many blocks as there are.
    [[nodiscard]] bool fits(const schedule::ScheduleSource& source, const LinkCall& call) const;
    /// Elements of a chunk with which the messages that a FIFO holds fit into a channel. 0: the
    /// longest has more chunks than would fit with one element each.
    [[nodiscard]] std::size_t most_in_chunk(const schedule::ScheduleSource& source,
                                            const schedule::Shape& shape,
                                            std::size_t element_bytes) const;
    [[nodiscard]] schedule::Shape shape_for(const schedule::ScheduleSource& source, Rank root,
                                            int aggregation) const;
    /// Whatever a source may choose, best first; empty where it cannot make the call.
    [[nodiscard]] std::optional<Candidate> candidate(const schedule::SourcePtr& source,
                                                     const LinkCall& call);
    /// Of one shape; nullopt where its longest message fits into no channel.
    [[nodiscard]] std::optional<Candidate> candidate(const schedule::SourcePtr& source,
                                                     const schedule::Shape& shape,
                                                     const LinkCall& call);
    [[nodiscard]] const schedule::Traffic& traffic_of(const schedule::SourcePtr& source,
                                                      const schedule::Shape& shape);
    /// The algorithm that the user wants, for this call or for all of its kind.
    [[nodiscard]] std::string_view wanted_for(CollectiveKind kind,
                                              std::string_view by_call = {}) const;

    const int ranks_;
    const Rank rank_;
    Preferences preferences_;
    const std::shared_ptr<const bootstrap::Layout> layout_;
    std::shared_ptr<const schedule::Catalogue> catalogue_;  // of this layout, too
    const schedule::LinkModel links_;
    const std::optional<BoardShape> board_;
    std::array<Entry, 32> recent_;
    using ShapedSource = std::pair<schedule::SourcePtr, schedule::Shape>;
    std::map<ShapedSource, std::shared_ptr<const Plan>> plans_;
    std::map<ShapedSource, schedule::Traffic> traffic_;
};

}  // namespace pccl::comm
