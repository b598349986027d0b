#include "csrc/comm/selection/selector.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/board/board_algorithm.h"

namespace pccl::comm {
namespace {

using schedule::Algorithm;

/// Works for blocks of different lengths: nothing is kept in scratch but a rank's own block.
bool takes_uneven(Algorithm algorithm, CollectiveKind kind) {
    if (algorithm == Algorithm::kOneShot) return true;
    return (algorithm == Algorithm::kRing || algorithm == Algorithm::kPat) &&
           kind == CollectiveKind::kAllGather;
}

/// No message of any rank is longer, in chunks. (The longest of this rank's plan would not do:
/// ranks of a tree or a butterfly differ, and all must cut alike.)
int longest_message(Algorithm algorithm, const schedule::Shape& shape) {
    const bool gathers_blocks = algorithm == Algorithm::kRecursiveDoubling ||
                                algorithm == Algorithm::kRecursiveHalving ||
                                algorithm == Algorithm::kBruck;
    if (!gathers_blocks) return 1;
    return shape.chunks *
           std::max(schedule::blocks(shape.kind, schedule::Buffer::kInput, shape.ranks),
                    schedule::blocks(shape.kind, schedule::Buffer::kOutput, shape.ranks));
}

std::optional<BoardShape> shape_of(const Board* board) {
    if (board == nullptr) return std::nullopt;
    return BoardShape{.ranks = board->ranks(),
                      .half_bytes = board->half_bytes(),
                      .part_bytes = board->part_bytes(),
                      .reads_directly = board->reads_directly(),
                      .crowded = board->is_crowded()};
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
      links_(link_model(setting.reach, *layout_)),
      board_(setting.board) {}

schedule::Shape Selector::shape_for(Algorithm algorithm, CollectiveKind kind, Rank root) const {
    const bool runs_side_by_side = algorithm == Algorithm::kRing && !schedule::is_rooted(kind);
    return {.kind = kind,
            .ranks = ranks_,
            .root = root,
            .chunks = schedule::chunk_granularity(algorithm, kind, ranks_) *
                      (runs_side_by_side ? layout_->lanes() : 1),
            .slots = schedule::slots_needed(algorithm, kind)};
}

Result<const Choice*> Selector::choose(const Collective& collective) {
    const Signature signature = signature_of(collective);
    const std::uint64_t slot = mixed(mixed(signature.count, signature.digest),
                                     static_cast<std::uint64_t>(signature.kind) * 64 +
                                         static_cast<std::uint64_t>(signature.type));
    Entry& entry = recent_[(slot ^ (slot >> 29)) % recent_.size()];
    if (!entry.decided || entry.signature != signature) {
        PCCL_ASSIGN_OR_RETURN(entry.choice, decide(signature));
        entry.signature = signature;
        entry.decided = true;
    }
    return &entry.choice;
}

abi::CollectiveHeader Selector::header_for(const Signature& signature, std::uint8_t algorithm,
                                           std::size_t window) {
    abi::CollectiveHeader header = header_of(signature);
    header.algorithm = algorithm;
    header.window = static_cast<std::uint32_t>(window);
    return header;
}

Selector::Candidate Selector::candidate(Algorithm algorithm, CollectiveKind kind,
                                        std::size_t bytes) {
    const schedule::Shape shape = shape_for(algorithm, kind, 0);
    const auto length = static_cast<double>(bytes);
    const schedule::Cost cost = schedule::cost(algorithm, shape, length);
    if (layout_->links() == nullptr) return {algorithm, predict(links_, cost), {}};
    const auto [known, is_new] = traffic_.try_emplace({algorithm, kind});
    if (is_new) known->second = traffic(algorithm, shape, links_, *layout_);
    return {algorithm, predict(links_, cost, known->second, length), known->second.busiest_name};
}

std::size_t Selector::most_in_chunk(Algorithm algorithm, const LinkCall& call) const {
    const schedule::Shape shape = shape_for(algorithm, call.kind, 0);
    const std::size_t message =
        links_.capacity / static_cast<std::size_t>(shape.slots) - sizeof(abi::CollectiveHeader);
    return message / static_cast<std::size_t>(longest_message(algorithm, shape)) /
           call.element_bytes;
}

std::vector<Selector::Candidate> Selector::candidates(const LinkCall& call) {
    std::vector<Candidate> found;
    for (const Algorithm algorithm : schedule::algorithms_for(call.kind)) {
        if (is_per_pair(call.kind) && algorithm != Algorithm::kOneShot) continue;
        if (call.is_uneven && !takes_uneven(algorithm, call.kind)) continue;
        if (most_in_chunk(algorithm, call) == 0) continue;
        found.push_back(candidate(algorithm, call.kind, call.count * call.element_bytes));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
    return found;
}

Result<Algorithm> Selector::algorithm_for(const LinkCall& call) {
    const std::vector<Candidate> usable = candidates(call);
    const std::string_view wanted = wanted_for(call.kind);
    if (wanted.empty()) return usable.front().algorithm;
    std::string names;
    std::string why;
    for (const Algorithm algorithm : schedule::algorithms_for(call.kind))
        if (schedule::to_string(algorithm) == wanted && most_in_chunk(algorithm, call) == 0)
            why = concat(" of ", ranks_, " ranks: its longest message is more than the ",
                         links_.capacity, " bytes that a link holds");
    for (const Candidate& candidate : usable) {
        if (schedule::to_string(candidate.algorithm) == wanted) return candidate.algorithm;
        names += concat(names.empty() ? "" : ", ", schedule::to_string(candidate.algorithm));
    }
    if (board_)
        for (const BoardAlgorithm algorithm : kBoardAlgorithms)
            names += concat(", ", to_string(algorithm));
    return Status::invalid_argument(concat("the algorithm that was asked for, ", wanted,
                                           ", cannot make this ", schedule::to_string(call.kind),
                                           why, "; these can: ", names));
}

Result<std::shared_ptr<const Plan>> Selector::plan(Algorithm algorithm, CollectiveKind kind,
                                                   Rank root) {
    auto& plan = plans_[{algorithm, kind, root}];
    if (plan == nullptr) {
        PCCL_ASSIGN_OR_RETURN(
            plan, make_plan(algorithm, shape_for(algorithm, kind, root), rank_, layout_->order()));
    }
    return plan;
}

Result<std::vector<Prediction>> Selector::explain(CollectiveKind kind, std::size_t block_bytes) {
    std::vector<Prediction> found;
    if (board_) {
        const BoardCall call{.kind = kind, .element_bytes = 1, .count = block_bytes};
        for (const BoardCandidate& candidate : board_candidates(*board_, call))
            found.push_back({.algorithm = to_string(candidate.algorithm),
                             .over = "board",
                             .seconds = candidate.seconds});
    }
    for (const Candidate& candidate : candidates({.kind = kind, .count = block_bytes}))
        found.push_back({.algorithm = schedule::to_string(candidate.algorithm),
                         .over = "links",
                         .seconds = candidate.seconds,
                         .busiest = candidate.busiest});
    // Ranks choose by no more than all of them know.
    const std::size_t known = is_per_pair(kind) ? 0 : block_bytes;
    const Signature signature{kind, DataType::kUint8, ReduceOp::kSum, 0, known, 0};
    PCCL_ASSIGN_OR_RETURN(const Choice choice, decide(signature));
    for (Prediction& prediction : found)
        prediction.is_chosen = prediction.algorithm == algorithm_name(choice.header.algorithm);
    return found;
}

std::string_view Selector::wanted_for(CollectiveKind kind) const {
    return ranks_ == 1 ? std::string_view() : algorithm_listed(preferences_.wanted, kind);
}

Result<Choice> Selector::decide(const Signature& signature) {
    if (auto choice = decide_on_board(signature)) return *std::move(choice);
    return decide_on_links(signature);
}

std::optional<Choice> Selector::decide_on_board(const Signature& signature) const {
    if (!board_) return std::nullopt;
    const BoardCall call{
        .kind = signature.kind, .element_bytes = size_of(signature.type), .count = signature.count};
    const std::vector<BoardCandidate> usable = board_candidates(*board_, call);
    const auto named = [&](std::string_view name) {
        return std::find_if(usable.begin(), usable.end(), [name](const auto& candidate) {
            return to_string(candidate.algorithm) == name;
        });
    };
    const std::string_view wanted = wanted_for(signature.kind);
    if (!wanted.empty() && named(wanted) == usable.end()) return std::nullopt;
    auto chosen =
        named(wanted.empty() ? preferences_.tuning.fastest(signature.kind, ranks_,
                                                           call.count * call.element_bytes)
                             : wanted);
    if (chosen == usable.end()) chosen = usable.begin();
    Choice choice;
    choice.on_board = plan_on_board(*board_, call, chosen->algorithm);
    choice.header = header_for(signature, wire_number(chosen->algorithm), choice.on_board.window);
    return choice;
}

Result<Choice> Selector::decide_on_links(const Signature& signature) {
    const bool widened = runs_widened(signature.kind, signature.type, signature.op, ranks_);
    const std::size_t element = size_of(widened ? DataType::kFloat32 : signature.type);
    const LinkCall call{.kind = signature.kind,
                        .element_bytes = element,
                        .count = signature.count,
                        .is_uneven = signature.digest != 0};
    PCCL_ASSIGN_OR_RETURN(const Algorithm algorithm, algorithm_for(call));
    Choice choice;
    PCCL_ASSIGN_OR_RETURN(choice.plan, plan(algorithm, signature.kind, signature.root));
    const schedule::Shape& shape = choice.plan->shape;
    PCCL_ASSERT(choice.plan->longest_message <= longest_message(algorithm, shape));
    // Cache lines, where so much fits.
    const std::size_t most = most_in_chunk(algorithm, call);
    choice.cut.grain = std::min(std::max<std::size_t>(kCacheLine / element, 1), most);
    choice.cut.chunks = shape.chunks;
    choice.cut.window =
        most / choice.cut.grain * choice.cut.grain * static_cast<std::size_t>(shape.chunks);
    choice.header = header_for(signature, static_cast<std::uint8_t>(algorithm), choice.cut.window);
    return choice;
}

}  // namespace pccl::comm
