// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/selection/selector.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include "csrc/base/assert.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/collective/geometry.h"

namespace pccl::comm {
namespace {

using schedule::ScheduleSource;
using schedule::SourcePtr;

// Maximum ratio of the predicted times at which the costlier setup is chosen. The segment is
// available at once, while links must be connected first; two-step algorithms wait twice; and
// predictions have errors of some percent.
constexpr double kWorthIt = 0.85;
// The ratio for direct reads, which move bytes once instead of twice, and leave more of the caches
// to the program. An all_reduce is excluded, because it also writes to memory that is in the caches
// of other ranks.
constexpr double kMovesOnce = 1.05;

double part_worth(ShmAlgorithm algorithm, CollectiveKind kind) {
    const bool moves_once =
        algorithm == ShmAlgorithm::kDirect && kind != CollectiveKind::kAllReduce;
    return moves_once ? kMovesOnce : kWorthIt;
}

// Algorithms within this factor count as equally fast, because predictions are not more exact.
constexpr double kAlike = 1.1;

// Bytes of a chunk on a strand that are worth its links and a thread.
constexpr std::size_t kLeastOnStrand = 256 * kKiB;

// Maximum number of cached decisions, some hundred bytes each.
constexpr std::size_t kMostKept = 1024;

using Ways = std::vector<Prediction>;

/// Returns the algorithm over links with the fewest messages, among those about as fast as `least`.
Ways::const_iterator calmest(const Ways& ways, Ways::const_iterator least) {
    auto found = least;
    for (auto way = least; way != ways.end() && way->seconds <= kAlike * least->seconds; ++way)
        if (way->source && !way->source->sizes && way->messages < found->messages) found = way;
    return found;
}

/// Returns end() if there is no segment. If only pairs have the lengths, all predictions are equal,
/// and the more capable algorithm is chosen.
Ways::const_iterator best_on_shm(const Ways& ways, CollectiveKind kind) {
    auto best = ways.end();
    for (const ShmAlgorithm algorithm : kShmAlgorithms) {
        const auto way = std::ranges::find_if(ways, [&](const Prediction& each) {
            return each.source == nullptr && each.on_shm == algorithm;
        });
        if (way == ways.end()) continue;
        const bool is_worth = best == ways.end() || way->seconds == best->seconds ||
                              way->seconds <= part_worth(algorithm, kind) * best->seconds;
        if (is_worth) best = way;
    }
    return best;
}

/// Returns the algorithm with the least cost in `ways`, which is sorted; excludes schedules for
/// certain sizes. `few`: prefer few messages among about equal times. That pays off on one host,
/// and for ranks that share cores; between hosts with a core for each rank, the load of ports
/// counts instead.
Ways::const_iterator least_of(const Ways& ways, CollectiveKind kind, bool few) {
    const auto on_shm = best_on_shm(ways, kind);
    const auto least = std::ranges::find_if(
        ways, [](const Prediction& way) { return way.source && !way.source->sizes; });
    if (least == ways.end()) return on_shm;
    if (on_shm != ways.end() && least->seconds > kWorthIt * on_shm->seconds) return on_shm;
    return few ? calmest(ways, least) : least;
}

costs::Predictor::Setting setting_of(const bootstrap::Roster& roster,
                                     const Selector::GroupPlace& place,
                                     const costs::MachineCosts& costs) {
    costs::Predictor::Setting setting{
        .reach = costs::reach_of(roster, costs), .segment = {}, .layout = place.layout};
    const ShmSegment* const segment = place.segment;
    if (segment == nullptr) return setting;
    setting.reach.ranks_on_core = segment->ranks_on_core();
    setting.segment = costs::ShmShape{.ranks = segment->ranks(),
                                      .buffer_bytes = segment->buffer_bytes(),
                                      .part_bytes = segment->part_bytes(),
                                      .reads_directly = segment->reads_directly(),
                                      .ranks_on_core = segment->ranks_on_core()};
    return setting;
}

/// Returns the length of all blocks of this rank, for a schedule that forwards them through other
/// ranks.
Result<std::uint64_t> one_length(const Collective& collective, const ScheduleSource& source) {
    std::optional<std::size_t> length;
    for (const std::span<const Block> blocks : {collective.inputs, collective.outputs}) {
        for (const Block& block : blocks) {
            if (block.count != length.value_or(block.count))
                return Status::invalid_argument(concat(
                    source.name, " ", schedule::to_string(collective.kind),
                    " passes blocks through other ranks, so all must have one length, but here are "
                    "some of ",
                    *length, " and of ", block.count,
                    " elements: choose another algorithm, which takes any lengths"));
            length = block.count;
        }
    }
    return length.value_or(0);
}

}  // namespace

Result<SelectionPreferences> preferences_of(const bootstrap::Roster& roster,
                                            std::shared_ptr<const schedule::Catalogue> catalogue,
                                            std::string wanted) {
    SelectionPreferences preferences{.catalogue = std::move(catalogue),
                                     .wanted = std::move(wanted)};
    PCCL_ASSIGN_OR_RETURN(preferences.tuning, Tuning::parse(roster.tuning));
    PCCL_ASSIGN_OR_RETURN(preferences.costs, costs::MachineCosts::parse(roster.costs));
    return preferences;
}

std::size_t block_bytes(CollectiveKind kind, std::size_t bytes, int ranks) {
    const bool has_blocks = schedule::blocks(kind, schedule::Buffer::kInput, ranks) > 1 ||
                            schedule::blocks(kind, schedule::Buffer::kOutput, ranks) > 1;
    return has_blocks ? bytes / static_cast<std::size_t>(ranks) : bytes;
}

Selector::Selector(const bootstrap::Roster& roster, const GroupPlace& place,
                   const SelectionPreferences& preferences)
    : Selector(place.rank, setting_of(roster, place, preferences.costs), preferences,
               bootstrap::least_threads(roster)) {}

Selector::Selector(Rank rank, costs::Predictor::Setting setting, SelectionPreferences preferences,
                   int threads)
    : rank_(rank),
      most_strands_(std::bit_floor(
          std::clamp<std::size_t>(static_cast<std::size_t>(threads), 1, Cut::kMostStrands))),
      preferences_(std::move(preferences)),
      predictor_(std::move(setting), preferences_.catalogue, preferences_.costs) {}

void Selector::choose_from(std::shared_ptr<const schedule::Catalogue> catalogue) {
    preferences_.catalogue = catalogue;
    predictor_.choose_from(std::move(catalogue));
    made_.clear();
    programs_.clear();
}

void Selector::restrict_to(std::shared_ptr<const schedule::LinkGraph> links) {
    predictor_.restrict_to(std::move(links));
    made_.clear();
    programs_.clear();
}

Result<const Decision*> Selector::choose(const Collective& collective) {
    Signature call = signature_of(collective);
    const std::string_view wanted = wanted_for(collective.kind, collective.algorithm);
    if (call.is_of_pairs) {
        PCCL_ASSIGN_OR_RETURN(call.count, relayed_length(collective, wanted));
    }
    costs::CallKey queried(call, collective.algorithm);
    if (const auto known = made_.find(queried); known != made_.end()) return &known->second;
    PCCL_ASSIGN_OR_RETURN(Decision decision, decide(call, wanted));
    if (made_.size() >= kMostKept) made_.clear();
    return &made_.emplace(std::move(queried), std::move(decision)).first->second;
}

std::string_view Selector::wanted_for(CollectiveKind kind, std::string_view by_call) const {
    if (predictor_.ranks() == 1) return {};
    return by_call.empty() ? algorithm_listed(preferences_.wanted, kind) : by_call;
}

Result<std::uint64_t> Selector::relayed_length(const Collective& collective,
                                               std::string_view wanted) const {
    if (wanted.empty()) return 0;
    const SourcePtr part = preferences_.catalogue->part(wanted);
    const SourcePtr source =
        part != nullptr ? part : predictor_.catalogue().find(wanted, collective.kind);
    if (source == nullptr || source->takes_uneven) return 0;
    return one_length(collective, *source);
}

SourcePtr Selector::loaded_for(const Signature& call) const {
    if (call.is_of_pairs || call.is_barrier) return nullptr;
    const std::uint64_t bytes =
        largest_buffer(call.kind, predictor_.ranks(), call.count * size_of(call.type));
    // The schedule that was loaded last has precedence.
    for (const SourcePtr& source : predictor_.catalogue().of(call.kind) | std::views::reverse)
        if (source->sizes && source->sizes->has(bytes) && predictor_.fits(*source, call))
            return source;
    return nullptr;
}

Result<Decision> Selector::decide(const Signature& call, std::string_view wanted) {
    if (const SourcePtr part = preferences_.catalogue->part(wanted)) return decide_part(call, part);
    PCCL_ASSIGN_OR_RETURN(const Prediction way, best_way(call, wanted));
    Decision decision;
    if (way.source == nullptr) {
        decision = decide_on_shm(call, way.on_shm);
    } else {
        PCCL_ASSIGN_OR_RETURN(decision, decide_on_links(call, way));
    }
    decision.predicted =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(way.seconds));
    return decision;
}

Result<Decision> Selector::decide_part(const Signature& call, const SourcePtr& part) {
    const bool is_whole_alone = call.op == ReduceOp::kAvg ||
                                runs_widened(call.kind, call.type, call.op, predictor_.ranks());
    if (schedule::reduces(call.kind) && is_whole_alone)
        return Status::unsupported(
            concat(part->name,
                   " is a part of a program that switches phases, which makes no "
                   "averages and adds no halves: sum, then divide; or widen first"));
    const schedule::Shape shape = predictor_.shape_for(*part, call.root, 0);
    const bool has_links = predictor_.links() == nullptr ||
                           predictor_.links()->carries(*part, shape, layout().order());
    if (!has_links || !predictor_.fits(*part, call, part->name))
        return Status::unsupported(
            concat(part->name, has_links ? " cannot make this " : " has no links for this ",
                   schedule::to_string(call.kind), has_links ? "" : " in this phase"));
    return decide_on_links(call, {.source = part});
}

Result<Prediction> Selector::best_way(const Signature& call, std::string_view wanted) {
    std::string_view by = chosen_by::kRequested;
    if (wanted.empty()) {
        if (const SourcePtr loaded = loaded_for(call)) wanted = loaded->name;
        by = wanted.empty() ? chosen_by::kTuning : chosen_by::kCapsule;
    }
    const std::vector<Prediction>& ways = predictor_.predict_about(call, wanted);
    const std::string_view name = wanted.empty() ? measured_for(call) : wanted;
    auto best = std::ranges::find_if(ways, [&](const Prediction& way) {
        return way.algorithm() == name || (way.source && tuned_name(*way.source) == name);
    });
    if (best == ways.end() && wanted.empty()) {
        by = chosen_by::kPrediction;
        best = least_of(ways, call.kind, layout().is_on_one_host() || predictor_.shares_cores());
    }
    if (best == ways.end()) return none_of(ways, call, wanted);
    Prediction chosen = *best;
    chosen.chosen_by = by;
    return chosen;
}

std::string_view Selector::measured_for(const Signature& call) const {
    if (!predictor_.segment()) return {};
    return preferences_.tuning.fastest(call.kind, predictor_.ranks(),
                                       call.count * size_of(call.type));
}

Status Selector::none_of(const std::vector<Prediction>& ways, const Signature& call,
                         std::string_view wanted) const {
    if (wanted.empty())
        return Status::unsupported(concat(
            "no schedule makes this ", schedule::to_string(call.kind), " over ", predictor_.ranks(),
            " ranks",
            predictor_.links() == nullptr ? "" : " along the links of this phase of the network"));
    std::string names;
    for (const Prediction& way : ways) names += concat(names.empty() ? "" : ", ", way.algorithm());
    return Status::invalid_argument(concat(
        "the requested algorithm, ", wanted, ", cannot make this ", schedule::to_string(call.kind),
        predictor_.why_not(call, wanted), "; these can: ", names));
}

Decision Selector::decide_on_shm(const Signature& call, ShmAlgorithm algorithm) const {
    Decision decision{.header = header_of(call)};
    decision.on_shm = costs::plan_on_shm(*predictor_.segment(), costs::shm_call(call), algorithm,
                                         preferences_.costs);
    decision.header.over = abi::Over::kShm;
    decision.header.schedule = static_cast<std::uint32_t>(algorithm);
    decision.header.window = static_cast<std::uint32_t>(decision.on_shm.window);
    return decision;
}

Result<Decision> Selector::decide_on_links(const Signature& call, const Prediction& way) {
    const ScheduleSource& source = *way.source;
    const schedule::Shape shape = predictor_.shape_for(source, call.root, way.aggregation);
    Decision decision{.header = header_of(call)};
    PCCL_ASSIGN_OR_RETURN(decision.program, program(way.source, shape));
    PCCL_ASSERT(decision.program->longest_message <= source.longest_message(shape));
    const std::size_t element_bytes = predictor_.link_element_bytes(call);
    const std::size_t most = predictor_.most_in_chunk(source, shape, element_bytes);
    Cut& cut = decision.cut;
    cut.grain = std::min(chunk_grain(element_bytes), most);
    cut.chunks = shape.chunks;
    cut_windows(cut, call.count, most, element_bytes);
    // Ranks drift apart between hosts, and on threads of their own. Otherwise all windows of one
    // host use the same cores.
    cut.windows_at_once = layout().is_on_one_host() && cut.strands == 1 ? 1 : 2;
    decision.header.schedule = source.tag();
    decision.header.window = static_cast<std::uint32_t>(cut.window);
    return decision;
}

void Selector::cut_windows(Cut& cut, std::size_t count, std::size_t most,
                           std::size_t element_bytes) const {
    const auto chunks = static_cast<std::size_t>(cut.chunks);
    cut.window = most / cut.grain * cut.grain * chunks;
    const std::size_t length = cut.chunk_length(count);
    const std::size_t strands = length * element_bytes / kLeastOnStrand;
    cut.strands = std::bit_floor(std::clamp<std::size_t>(strands, 1, most_strands_));
    if (cut.strands > 1) {
        // Each strand gets as many windows.
        const std::size_t rounds =
            (cut.rounds(count) + cut.strands - 1) / cut.strands * cut.strands;
        const std::size_t piece = (length + rounds - 1) / rounds;
        cut.window = std::min(cut.window, (piece + cut.grain - 1) / cut.grain * cut.grain * chunks);
    }
    cut.window = cut.even_window(count);
}

Result<std::shared_ptr<const LinkProgram>> Selector::program(const SourcePtr& source,
                                                             const schedule::Shape& shape) {
    auto& program = programs_[{source, shape}];
    if (program == nullptr) {
        PCCL_ASSIGN_OR_RETURN(program, make_link_program(*source, shape, rank_, layout().order()));
    }
    return program;
}

Result<std::vector<Prediction>> Selector::explain(CollectiveKind kind, std::size_t block_bytes) {
    const std::string_view wanted = wanted_for(kind);
    Signature call{.kind = kind,
                   .type = DataType::kUint8,
                   .count = block_bytes,
                   .is_of_pairs = is_of_pairs({.kind = kind, .is_even = may_be_even(kind)})};
    std::vector<Prediction> ways = predictor_.predict(call, wanted);
    // The choice only uses data that all ranks have.
    if (call.is_of_pairs) call.count = 0;
    PCCL_ASSIGN_OR_RETURN(const Prediction best, best_way(call, wanted));
    for (Prediction& way : ways) {
        way.is_chosen = way.algorithm() == best.algorithm();
        if (way.is_chosen) way.chosen_by = best.chosen_by;
    }
    return ways;
}

}  // namespace pccl::comm
