// Chooses the algorithm and the cut of a collective, alike on every rank.
//
// The choice is a pure function of what all ranks know: the roster, the collective, and the lengths
// of blocks that every rank sees. Where ranks see different lengths (all_to_all, gather, scatter)
// it depends on the group alone. Choices are kept: a repeated call costs one look, and one that is
// nearly like an earlier one (predict_about()) no prediction.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/collective/prediction.h"
#include "csrc/comm/selection/decision.h"
#include "csrc/comm/selection/predictor.h"
#include "csrc/comm/selection/tuning.h"
#include "csrc/comm/shm/shm_segment.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/schedule/generators/generators.h"

namespace pccl::comm {

/// What comes before the cost model; the same on all ranks.
struct Preferences {
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in();
    std::string wanted{};  // by the user: "all_reduce=ring,all_gather=bruck"
    Tuning tuning{};       // of groups on one host
    costs::MachineCosts costs{};
};

/// With what rank 0 tells all in `roster`.
[[nodiscard]] Result<Preferences> preferences_of(
    const bootstrap::Roster& roster, std::shared_ptr<const schedule::Catalogue> catalogue,
    std::string wanted);

/// Of each block of a collective whose largest buffer has `bytes`.
[[nodiscard]] PCCL_API std::size_t block_bytes(CollectiveKind kind, std::size_t bytes, int ranks);

class Selector {
   public:
    struct GroupPlace {
        Rank rank = 0;
        const ShmSegment* segment = nullptr;  // null in groups that have none
        std::shared_ptr<const bootstrap::Layout> layout;
    };
    Selector(const bootstrap::Roster& roster, const GroupPlace& place,
             const Preferences& preferences);
    Selector(Rank rank, Predictor::Setting setting, Preferences preferences);

    /// Valid until the next call. kInvalidArgument names an algorithm that was wanted and does not
    /// fit.
    Result<const Decision*> choose(const Collective& collective);

    /// Chooses from `catalogue` from now on, which must be the same on all ranks.
    void choose_from(std::shared_ptr<const schedule::Catalogue> catalogue);
    [[nodiscard]] const std::shared_ptr<const schedule::Catalogue>& catalogue() const {
        return preferences_.catalogue;
    }

    /// Whether the call names a part of a program that switches phases: its own links decide
    /// whether it can run, not those of the group.
    [[nodiscard]] bool is_part(const Collective& collective) const {
        return !collective.algorithm.empty() &&
               preferences_.catalogue->part(collective.algorithm) != nullptr;
    }

    /// Chooses what goes over these links alone from now on; null: over any, or the segment.
    void follow(std::shared_ptr<const schedule::LinkGraph> links);

    /// Every way to make a collective of uint8 blocks of equal length, best first.
    [[nodiscard]] Result<std::vector<Prediction>> explain(CollectiveKind kind,
                                                          std::size_t block_bytes);
    [[nodiscard]] const bootstrap::Layout& layout() const { return predictor_.layout(); }
    /// What predictions count on, alike on all ranks.
    [[nodiscard]] const costs::MachineCosts& costs() const { return preferences_.costs; }

   private:
    struct HashOfCall {
        std::size_t operator()(const Asked& asked) const {
            return digest_of(header_of(asked.first)) ^ std::hash<std::string>()(asked.second);
        }
    };

    /// `wanted`: by the user; empty where the choice is free.
    Result<Decision> decide(const Signature& call, std::string_view wanted);
    Result<Decision> decide_part(const Signature& call, const schedule::SourcePtr& part);
    [[nodiscard]] Decision decide_on_shm(const Signature& call, ShmAlgorithm algorithm) const;
    Result<Decision> decide_on_links(const Signature& call, const Prediction& way);
    /// What is wanted, or else was measured to be the fastest, or else is predicted to be.
    Result<Prediction> best_way(const Signature& call, std::string_view wanted);
    /// By pccl tune, on one host; empty where nothing was.
    [[nodiscard]] std::string_view measured_for(const Signature& call) const;
    [[nodiscard]] Status none_of(const std::vector<Prediction>& ways, const Signature& call,
                                 std::string_view wanted) const;
    /// The schedule that was loaded for calls of this size; null where there is none that can make
    /// it. Ranks that know different sizes have none.
    [[nodiscard]] schedule::SourcePtr loaded_for(const Signature& call) const;
    Result<std::shared_ptr<const LinkProgram>> program(const schedule::SourcePtr& source,
                                                       const schedule::Shape& shape);
    /// Of a collective of which only pairs know the lengths: of all its blocks, where the schedule
    /// that the user wants passes them through other ranks; else 0.
    [[nodiscard]] Result<std::uint64_t> relayed_length(const Collective& collective,
                                                       std::string_view wanted) const;
    /// The algorithm that the user wants, for this call or for all of its kind.
    [[nodiscard]] std::string_view wanted_for(CollectiveKind kind,
                                              std::string_view by_call = {}) const;

    const Rank rank_;
    Preferences preferences_;
    Predictor predictor_;
    std::unordered_map<Asked, Decision, HashOfCall> made_;  // wanted: by this call alone
    std::map<std::pair<schedule::SourcePtr, schedule::Shape>, std::shared_ptr<const LinkProgram>>
        programs_;
};

}  // namespace pccl::comm
