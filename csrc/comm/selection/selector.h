// SPDX-License-Identifier: Apache-2.0

// Selector of the algorithm and the cut of a collective; the choice is equal on every rank.
//
// The choice is a pure function of data that all ranks share: the roster, the collective, and the
// lengths of blocks that every rank has. If ranks have different lengths (all_to_all, gather,
// scatter), it depends on the group alone. Choices are cached: a repeated call costs one lookup,
// and a call similar to an earlier one (predict_about()) needs no prediction.
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
#include "csrc/comm/selection/tuning.h"
#include "csrc/comm/shm/shm_segment.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/model/predictor.h"
#include "csrc/schedule/generators/generators.h"

namespace pccl::comm {

/// Settings that take precedence over the cost model; equal on all ranks.
struct SelectionPreferences {
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in();
    std::string wanted{};  // by the user: "all_reduce=ring,all_gather=bruck"
    Tuning tuning{};       // for groups on one host
    costs::MachineCosts costs{};
};

/// Returns the preferences, with the data that rank 0 has published in `roster`.
[[nodiscard]] Result<SelectionPreferences> preferences_of(
    const bootstrap::Roster& roster, std::shared_ptr<const schedule::Catalogue> catalogue,
    std::string wanted);

/// Returns the bytes of each block of a collective whose largest buffer has `bytes` bytes.
[[nodiscard]] PCCL_API std::size_t block_bytes(CollectiveKind kind, std::size_t bytes, int ranks);

class Selector {
   public:
    struct GroupPlace {
        Rank rank = 0;
        const ShmSegment* segment = nullptr;  // null if the group has none
        std::shared_ptr<const bootstrap::Layout> layout;
    };
    Selector(const bootstrap::Roster& roster, const GroupPlace& place,
             const SelectionPreferences& preferences);
    /// `threads`: those that every rank may run.
    Selector(Rank rank, costs::Predictor::Setting setting, SelectionPreferences preferences,
             int threads = 1);

    /// Returns a decision that is valid until the next call. kInvalidArgument names a requested
    /// algorithm that does not fit.
    Result<const Decision*> choose(const Collective& collective);

    /// Chooses from `catalogue` from now on; it must be equal on all ranks.
    void choose_from(std::shared_ptr<const schedule::Catalogue> catalogue);
    [[nodiscard]] const std::shared_ptr<const schedule::Catalogue>& catalogue() const {
        return preferences_.catalogue;
    }

    /// Returns whether the call names a part of a program that switches phases: the links of that
    /// part decide whether it can run, not those of the group.
    [[nodiscard]] bool is_part(const Collective& collective) const {
        return !collective.algorithm.empty() &&
               preferences_.catalogue->part(collective.algorithm) != nullptr;
    }

    /// Restricts choices to these links from now on; null: any links, and the segment.
    void restrict_to(std::shared_ptr<const schedule::LinkGraph> links);

    /// Returns all algorithms for a collective of uint8 blocks of equal length, fastest first.
    [[nodiscard]] Result<std::vector<Prediction>> explain(CollectiveKind kind,
                                                          std::size_t block_bytes);
    [[nodiscard]] const bootstrap::Layout& layout() const { return predictor_.layout(); }
    /// Returns the costs for predictions; equal on all ranks.
    [[nodiscard]] const costs::MachineCosts& costs() const { return preferences_.costs; }

   private:
    struct HashOfCall {
        std::size_t operator()(const costs::CallKey& queried) const {
            return digest_of(header_of(queried.first)) ^ std::hash<std::string>()(queried.second);
        }
    };

    /// Returns a new decision. `wanted`: the algorithm that the user requests; empty: the choice is
    /// free.
    Result<Decision> decide(const Signature& call, std::string_view wanted);
    Result<Decision> decide_part(const Signature& call, const schedule::SourcePtr& part);
    [[nodiscard]] Decision decide_on_shm(const Signature& call, ShmAlgorithm algorithm) const;
    Result<Decision> decide_on_links(const Signature& call, const Prediction& way);
    /// Returns the requested algorithm, or else a capsule that was loaded for the size, or else the
    /// fastest algorithm measured, or else the fastest predicted.
    Result<Prediction> best_way(const Signature& call, std::string_view wanted);
    /// Returns the algorithm that pccl tune measured as the fastest, on one host; empty: none.
    [[nodiscard]] std::string_view measured_for(const Signature& call) const;
    [[nodiscard]] Status none_of(const std::vector<Prediction>& ways, const Signature& call,
                                 std::string_view wanted) const;
    /// Returns the schedule that was loaded for calls of this size; null if there is none that can
    /// make the call. If ranks have different sizes, there is none.
    [[nodiscard]] schedule::SourcePtr loaded_for(const Signature& call) const;
    Result<std::shared_ptr<const LinkProgram>> program(const schedule::SourcePtr& source,
                                                       const schedule::Shape& shape);
    /// Returns the length of all blocks, for a collective whose lengths only pairs have, if the
    /// user requests a schedule that forwards blocks through other ranks; otherwise 0.
    [[nodiscard]] Result<std::uint64_t> relayed_length(const Collective& collective,
                                                       std::string_view wanted) const;
    /// Returns the algorithm that the user requests, for this call or for all of its kind.
    [[nodiscard]] std::string_view wanted_for(CollectiveKind kind,
                                              std::string_view by_call = {}) const;

    /// Cuts blocks of `count` elements into windows of at most `most` elements of each chunk, and
    /// these into strands where the blocks are long.
    void cut_windows(Cut& cut, std::size_t count, std::size_t most,
                     std::size_t element_bytes) const;

    const Rank rank_;
    const std::size_t most_strands_;
    SelectionPreferences preferences_;
    costs::Predictor predictor_;
    /// Key: the call and the algorithm that it requests itself.
    std::unordered_map<costs::CallKey, Decision, HashOfCall> made_;
    std::map<std::pair<schedule::SourcePtr, schedule::Shape>, std::shared_ptr<const LinkProgram>>
        programs_;
};

}  // namespace pccl::comm
