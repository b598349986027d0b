#include "csrc/comm/selection/selector.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/board/board_algorithm.h"
#include "csrc/comm/selection/layout_catalogue.h"

namespace pccl::comm {
namespace {

using schedule::ScheduleSource;
using schedule::SourcePtr;

std::optional<BoardShape> shape_of(const Board* board) {
    if (board == nullptr) return std::nullopt;
    return BoardShape{.ranks = board->ranks(),
                      .half_bytes = board->half_bytes(),
                      .part_bytes = board->part_bytes(),
                      .reads_directly = board->reads_directly(),
                      .ranks_on_core = board->ranks_on_core()};
}

/// Of all blocks that this rank has, for a schedule that passes them through other ranks.
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

std::size_t block_bytes(CollectiveKind kind, std::size_t bytes, int ranks) {
    const bool has_blocks = schedule::blocks(kind, schedule::Buffer::kInput, ranks) > 1 ||
                            schedule::blocks(kind, schedule::Buffer::kOutput, ranks) > 1;
    return has_blocks ? bytes / static_cast<std::size_t>(ranks) : bytes;
}

Selector::Selector(const bootstrap::Roster& roster, Place place, Preferences preferences)
    : Selector({.rank = place.rank,
                .reach = reach_of(roster),
                .board = shape_of(place.board),
                .layout = std::move(place.layout)},
               std::move(preferences)) {}

Selector::Selector(Setting setting, Preferences preferences)
    : ranks_(setting.reach.ranks),
      rank_(setting.rank),
      preferences_(std::move(preferences)),
      layout_(std::move(setting.layout)),
      catalogue_(catalogue_for(preferences_.catalogue, *layout_)),
      links_(link_model(setting.reach, *layout_, preferences_.costs)),
      board_(setting.board) {}

schedule::Shape Selector::shape_for(const ScheduleSource& source, Rank root,
                                    int aggregation) const {
    schedule::Shape shape = schedule::least_shape(source, ranks_, root);
    if (source.runs_side_by_side) shape.chunks *= layout_->lanes();
    shape.aggregation = aggregation;
    return shape;
}

Result<const Choice*> Selector::choose(const Collective& collective) {
    Signature signature = signature_of(collective);
    const std::string_view wanted = wanted_for(collective.kind, collective.algorithm);
    if (const SourcePtr relayed = relaying(collective.kind, wanted)) {
        PCCL_ASSIGN_OR_RETURN(signature.count, one_length(collective, *relayed));
    }
    const std::uint64_t slot = mixed(mixed(signature.count, signature.digest),
                                     static_cast<std::uint64_t>(signature.kind) * 64 +
                                         static_cast<std::uint64_t>(signature.type));
    Entry& entry = recent_[(slot ^ (slot >> 29)) % recent_.size()];
    if (!entry.decided || entry.signature != signature || entry.wanted != collective.algorithm) {
        PCCL_ASSIGN_OR_RETURN(entry.choice, decide(signature, wanted));
        entry.signature = signature;
        entry.wanted = collective.algorithm;
        entry.decided = true;
    }
    return &entry.choice;
}

std::optional<Selector::Candidate> Selector::candidate(const SourcePtr& source,
                                                       const LinkCall& call) {
    if (!suits(*source, call)) return std::nullopt;
    // Whatever the root: the choice must not depend on which one was asked for first.
    const Rank root = source->only ? call.root : Rank{0};
    std::optional<Candidate> best = candidate(source, shape_for(*source, root, 0), call);
    for (int aggregation = 1; source->aggregates && aggregation < ranks_; aggregation *= 2) {
        const auto other = candidate(source, shape_for(*source, root, aggregation), call);
        if (other && (!best || other->seconds < best->seconds)) best = other;
    }
    return best;
}

std::optional<Selector::Candidate> Selector::candidate(const SourcePtr& source,
                                                       const schedule::Shape& shape,
                                                       const LinkCall& call) {
    const std::size_t most = most_in_chunk(*source, shape, call.element_bytes);
    if (most == 0) return std::nullopt;
    const auto length = static_cast<double>(call.count * call.element_bytes);
    const auto chunks = static_cast<std::size_t>(shape.chunks);
    const std::size_t windows = (call.count + most * chunks - 1) / (most * chunks);
    const schedule::Cost cost = schedule::in_windows(
        source->cost(shape, length), static_cast<long long>(std::max<std::size_t>(windows, 1)));
    Candidate made{.source = source, .aggregation = shape.aggregation, .busiest = {}};
    if (layout_->links() == nullptr) {
        made.seconds = predict(links_, cost);
        return made;
    }
    const schedule::Traffic& crossed = traffic_of(source, shape);
    made.seconds = predict(links_, cost, crossed, length);
    made.busiest = crossed.busiest_name;
    return made;
}

const schedule::Traffic& Selector::traffic_of(const SourcePtr& source,
                                              const schedule::Shape& shape) {
    const auto [known, is_new] = traffic_.try_emplace({source, shape});
    if (is_new)
        known->second = traffic(*source, shape, links_, *layout_->links(), layout_->order());
    return known->second;
}

std::size_t Selector::most_in_chunk(const ScheduleSource& source, const schedule::Shape& shape,
                                    std::size_t element_bytes) const {
    const std::size_t message =
        links_.capacity / static_cast<std::size_t>(shape.slots) - sizeof(abi::CollectiveHeader);
    return message / static_cast<std::size_t>(source.longest_message(shape)) / element_bytes;
}

SourcePtr Selector::relaying(CollectiveKind kind, std::string_view wanted) const {
    if (wanted.empty() || !is_per_pair(kind)) return nullptr;
    SourcePtr source = catalogue_->find(wanted, kind);
    return source != nullptr && !source->takes_uneven ? source : nullptr;
}

bool Selector::suits(const ScheduleSource& source, const LinkCall& call) const {
    // Only who asks for it says that all blocks have one length.
    const bool may_be_uneven = is_per_pair(call.kind) ? call.wanted != source.name : call.is_uneven;
    if (may_be_uneven && !source.takes_uneven) return false;
    return schedule::check_shape(source, shape_for(source, call.root, 0)).is_ok();
}

bool Selector::fits(const ScheduleSource& source, const LinkCall& call) const {
    if (!suits(source, call)) return false;
    return most_in_chunk(source, shape_for(source, call.root, 0), call.element_bytes) > 0;
}

std::vector<Selector::Candidate> Selector::candidates(const LinkCall& call) {
    std::vector<Candidate> found;
    for (const SourcePtr& source : catalogue_->of(call.kind))
        if (auto one = candidate(source, call)) found.push_back(*std::move(one));
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
    return found;
}

Result<Selector::Candidate> Selector::candidate_for(const LinkCall& call) {
    const std::vector<Candidate> usable = candidates(call);
    const auto best = std::ranges::find_if(usable, [&](const Candidate& candidate) {
        return call.wanted.empty() ? !candidate.source->sizes
                                   : candidate.source->name == call.wanted;
    });
    if (best != usable.end()) return *best;
    if (call.wanted.empty())
        return Status::unsupported(concat("no schedule makes this ", schedule::to_string(call.kind),
                                          " over ", ranks_, " ranks"));
    std::string names;
    for (const Candidate& candidate : usable) {
        names += concat(names.empty() ? "" : ", ", candidate.source->name);
    }
    if (board_)
        for (const BoardAlgorithm algorithm : kBoardAlgorithms)
            names += concat(", ", to_string(algorithm));
    return Status::invalid_argument(concat("the algorithm that was asked for, ", call.wanted,
                                           ", cannot make this ", schedule::to_string(call.kind),
                                           why_not(call), "; these can: ", names));
}

std::string Selector::why_not(const LinkCall& call) const {
    const SourcePtr source = catalogue_->find(call.wanted, call.kind);
    if (source == nullptr) return {};
    const schedule::Shape shape = shape_for(*source, call.root, 0);
    const Status fits = schedule::check_shape(*source, shape);
    if (!fits.is_ok()) return concat(" (", fits.message(), ")");
    if (most_in_chunk(*source, shape, call.element_bytes) > 0) return {};
    return concat(" of ", ranks_, " ranks: its longest message is more than the ", links_.capacity,
                  " bytes that a link holds");
}

Result<std::shared_ptr<const Plan>> Selector::plan(const SourcePtr& source,
                                                   const schedule::Shape& shape) {
    auto& plan = plans_[{source, shape}];
    if (plan == nullptr) {
        PCCL_ASSIGN_OR_RETURN(plan, make_plan(*source, shape, rank_, layout_->order()));
    }
    return plan;
}

Result<std::vector<Prediction>> Selector::explain(CollectiveKind kind, std::size_t block_bytes) {
    std::vector<Prediction> found;
    if (board_) {
        const BoardCall call{.kind = kind, .element_bytes = 1, .count = block_bytes};
        for (const BoardCandidate& candidate : board_candidates(*board_, call, preferences_.costs))
            found.push_back({.algorithm = std::string(to_string(candidate.algorithm)),
                             .over = "board",
                             .seconds = candidate.seconds});
    }
    const std::string_view wanted = wanted_for(kind);
    for (const Candidate& candidate :
         candidates({.kind = kind, .count = block_bytes, .wanted = wanted}))
        found.push_back({.algorithm = candidate.source->name,
                         .over = "links",
                         .seconds = candidate.seconds,
                         .busiest = candidate.busiest});
    // Ranks choose by no more than all of them know.
    const std::size_t known = is_per_pair(kind) ? 0 : block_bytes;
    const Signature signature{kind, DataType::kUint8, ReduceOp::kSum, 0, known, 0};
    PCCL_ASSIGN_OR_RETURN(const Choice choice, decide(signature, wanted));
    for (Prediction& prediction : found) prediction.is_chosen = prediction.algorithm == choice.name;
    return found;
}

std::string_view Selector::wanted_for(CollectiveKind kind, std::string_view by_call) const {
    if (ranks_ == 1) return {};
    return by_call.empty() ? algorithm_listed(preferences_.wanted, kind) : by_call;
}

SourcePtr Selector::loaded_for(const Signature& signature) const {
    if (is_per_pair(signature.kind) || signature.is_barrier) return nullptr;
    using schedule::Buffer;
    const int blocks = std::max(schedule::blocks(signature.kind, Buffer::kInput, ranks_),
                                schedule::blocks(signature.kind, Buffer::kOutput, ranks_));
    const std::uint64_t bytes =
        signature.count * size_of(signature.type) * static_cast<std::uint64_t>(blocks);
    // The last one that was loaded first.
    for (const SourcePtr& source : catalogue_->of(signature.kind) | std::views::reverse)
        if (source->sizes && source->sizes->has(bytes) && fits(*source, link_call(signature, {})))
            return source;
    return nullptr;
}

void Selector::choose_from(std::shared_ptr<const schedule::Catalogue> catalogue) {
    catalogue_ = catalogue_for(std::move(catalogue), *layout_);
    recent_ = {};
    plans_.clear();
    traffic_.clear();
}

Result<Choice> Selector::decide(const Signature& signature, std::string_view wanted) {
    const SourcePtr loaded = wanted.empty() ? loaded_for(signature) : nullptr;
    if (loaded != nullptr) wanted = loaded->name;
    if (auto choice = decide_on_board(signature, wanted)) return *std::move(choice);
    return decide_on_links(signature, link_call(signature, wanted));
}

std::optional<Choice> Selector::decide_on_board(const Signature& signature,
                                                std::string_view wanted) const {
    if (!board_) return std::nullopt;
    const BoardCall call{
        .kind = signature.kind, .element_bytes = size_of(signature.type), .count = signature.count};
    const std::vector<BoardCandidate> usable = board_candidates(*board_, call, preferences_.costs);
    const auto named = [&](std::string_view name) {
        return std::find_if(usable.begin(), usable.end(), [name](const auto& candidate) {
            return to_string(candidate.algorithm) == name;
        });
    };
    if (!wanted.empty() && named(wanted) == usable.end()) return std::nullopt;
    auto chosen =
        named(wanted.empty() ? preferences_.tuning.fastest(signature.kind, ranks_,
                                                           call.count * call.element_bytes)
                             : wanted);
    if (chosen == usable.end()) chosen = usable.begin();
    Choice choice;
    choice.name = to_string(chosen->algorithm);
    choice.on_board = plan_on_board(*board_, call, chosen->algorithm, preferences_.costs);
    choice.header = header_of(signature);
    choice.header.over = abi::Over::kBoard;
    choice.header.schedule = static_cast<std::uint32_t>(chosen->algorithm);
    choice.header.window = static_cast<std::uint32_t>(choice.on_board.window);
    return choice;
}

Selector::LinkCall Selector::link_call(const Signature& signature, std::string_view wanted) const {
    const bool widened = runs_widened(signature.kind, signature.type, signature.op, ranks_);
    return {.kind = signature.kind,
            .element_bytes = size_of(widened ? DataType::kFloat32 : signature.type),
            .count = signature.count,
            .is_uneven = signature.digest != 0,
            .root = signature.root,
            .wanted = wanted};
}

Result<Choice> Selector::decide_on_links(const Signature& signature, const LinkCall& call) {
    PCCL_ASSIGN_OR_RETURN(const Candidate candidate, candidate_for(call));
    const ScheduleSource& source = *candidate.source;
    const schedule::Shape shape = shape_for(source, signature.root, candidate.aggregation);
    Choice choice;
    choice.name = source.name;
    PCCL_ASSIGN_OR_RETURN(choice.plan, plan(candidate.source, shape));
    PCCL_ASSERT(choice.plan->longest_message <= source.longest_message(shape));
    // Cache lines, where so much fits.
    const std::size_t most = most_in_chunk(source, shape, call.element_bytes);
    choice.cut.grain = std::min(std::max<std::size_t>(kCacheLine / call.element_bytes, 1), most);
    choice.cut.chunks = shape.chunks;
    choice.cut.window =
        most / choice.cut.grain * choice.cut.grain * static_cast<std::size_t>(shape.chunks);
    choice.header = header_of(signature);
    choice.header.schedule = source.tag();
    choice.header.window = static_cast<std::uint32_t>(choice.cut.window);
    return choice;
}

}  // namespace pccl::comm
