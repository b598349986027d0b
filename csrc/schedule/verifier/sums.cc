// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/sums.h"

#include <utility>

#include "csrc/schedule/verifier/checks.h"
#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/memory_map.h"

namespace pccl::schedule {
namespace {

/// Returns, by input chunk, the sum in the first rank that gets it.
std::vector<Expression> first_sums(const Shape& shape, const MemoryMap& memory,
                                   const Holdings& holdings) {
    std::vector<Expression> sums(static_cast<std::size_t>(memory.chunks(0, Buffer::kInput)),
                                 kUnwritten);
    const bool scatters = shape.kind == CollectiveKind::kReduceScatter;
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
        if (!memory.exists(rank, Buffer::kOutput)) continue;
        for (int i = 0; i < memory.chunks(rank, Buffer::kOutput); ++i) {
            const int chunk = scatters ? rank * shape.chunks + i : i;
            Expression& sum = sums[static_cast<std::size_t>(chunk)];
            const int place = memory.place(rank, {Buffer::kOutput, i, 1});
            if (sum == kUnwritten) sum = holdings.held[static_cast<std::size_t>(place)];
        }
    }
    return sums;
}

}  // namespace

Result<std::vector<SumOrder>> sums_of(const Schedule& schedule) {
    std::vector<SumOrder> orders;
    if (!reduces(schedule.shape.kind)) return orders;
    const MemoryMap memory(schedule, Placement::kOutOfPlace);
    PCCL_ASSIGN_OR_RETURN(const EventGraph graph, EventGraph::build(schedule));
    PCCL_ASSIGN_OR_RETURN(const std::vector<EventId> order, order_of(graph));
    PCCL_ASSIGN_OR_RETURN(const Holdings holdings, run_on_expressions(graph, order, memory));
    int chunk = 0;
    for (const Expression sum : first_sums(schedule.shape, memory, holdings)) {
        std::string text = holdings.expressions.written(sum);
        if (orders.empty() || orders.back().order != text)
            orders.push_back({.first = chunk, .last = chunk, .order = std::move(text)});
        orders.back().last = chunk++;
    }
    return orders;
}

}  // namespace pccl::schedule
