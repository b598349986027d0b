// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/verifier.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "csrc/schedule/moved_blocks.h"
#include "csrc/schedule/verifier/checks.h"
#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/memory_map.h"
#include "csrc/schedule/verifier/postcondition.h"

namespace pccl::schedule {
namespace {

/// Returns whether moved_blocks() gives each rank the length of every chunk that it moves, so that
/// sender and receiver of a message agree. `holdings` are those of a correct schedule.
bool finds_lengths(const EventGraph& graph, const Holdings& holdings) {
    const Schedule& schedule = graph.schedule();
    if (holdings.moved.empty()) return false;
    auto moved = holdings.moved.begin();
    for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
        const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
        for (const auto& lane : moved_blocks(program, schedule.shape, rank))
            for (const MovedBlocks& found : lane) {
                if (!std::equal(found.begin(), found.end(), moved)) return false;
                std::advance(moved, found.size());
            }
    }
    return true;
}

/// Graph and order of the steps, which are the same in every placement.
struct Ordered {
    EventGraph graph;
    std::vector<EventId> order;
};

Result<Ordered> put_in_order(const Schedule& schedule) {
    PCCL_ASSIGN_OR_RETURN(EventGraph graph, EventGraph::build(schedule));
    PCCL_ASSIGN_OR_RETURN(std::vector<EventId> order, order_of(graph));
    return Ordered{std::move(graph), std::move(order)};
}

Result<Verdict> judge(const Ordered& steps, const MemoryMap& memory) {
    const auto& [graph, order] = steps;
    PCCL_TRY(check_races(graph, order, memory));
    PCCL_ASSIGN_OR_RETURN(const Holdings holdings, run_on_expressions(graph, order, memory));
    PCCL_ASSIGN_OR_RETURN(const bool bit_identical, check_postcondition(graph, memory, holdings));
    return Verdict{.bit_identical = bit_identical,
                   .sums_made_once = !holdings.expressions.has_repeated_sums(),
                   .takes_uneven = finds_lengths(graph, holdings)};
}

/// Verifies in order; each check relies on the checks before it.
Result<Verdict> verify_in(const Schedule& schedule, std::span<const Placement> placements) {
    PCCL_TRY(check_shape(schedule));
    std::optional<Ordered> steps;
    Verdict verdict;
    for (const Placement placement : placements) {
        const MemoryMap memory(schedule, placement);
        PCCL_TRY(check_steps(schedule, memory));
        if (!steps) {
            PCCL_ASSIGN_OR_RETURN(steps, put_in_order(schedule));
        }
        PCCL_ASSIGN_OR_RETURN(const Verdict found, judge(*steps, memory));
        if (placement == placements.front()) verdict = found;
    }
    verdict.rounds = longest_message_chain(steps->graph, steps->order);
    return verdict;
}

}  // namespace

Result<Verdict> verify(const Schedule& schedule, Placement placement) {
    if (placement == Placement::kInPlace && schedule.shape.kind == CollectiveKind::kAllToAll) {
        PCCL_TRY(check_shape(schedule));
        return Status::invalid_argument("all_to_all has no in-place form");
    }
    return verify_in(schedule, std::array{placement});
}

Result<Verdict> verify(const Schedule& schedule) {
    constexpr std::array kBoth{Placement::kOutOfPlace, Placement::kInPlace};
    const bool has_both = schedule.shape.kind != CollectiveKind::kAllToAll;
    return verify_in(schedule, std::span(kBoth).first(has_both ? 2 : 1));
}

}  // namespace pccl::schedule
