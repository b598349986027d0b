#include "csrc/schedule/verifier/verifier.h"

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/execution.h"
#include "csrc/schedule/verifier/memory_map.h"
#include "csrc/schedule/verifier/postcondition.h"
#include "csrc/schedule/verifier/races.h"
#include "csrc/schedule/verifier/structure.h"

namespace pccl::schedule {

// Each check relies on those before it.
Result<Verdict> verify(const Schedule& schedule, Placement placement) {
    PCCL_TRY(check_shape(schedule));
    if (placement == Placement::kInPlace && schedule.shape.kind == CollectiveKind::kAllToAll) {
        return Status::invalid_argument("all_to_all has no in-place form");
    }
    const MemoryMap memory(schedule, placement);
    PCCL_TRY(check_steps(schedule, memory));
    PCCL_ASSIGN_OR_RETURN(const EventGraph graph, EventGraph::build(schedule));
    PCCL_ASSIGN_OR_RETURN(const std::vector<EventId> order, order_of(graph));
    PCCL_TRY(check_races(graph, order, memory));
    PCCL_ASSIGN_OR_RETURN(const Holdings holdings, run_on_expressions(graph, order, memory));
    PCCL_ASSIGN_OR_RETURN(const bool bit_identical, check_postcondition(graph, memory, holdings));
    return Verdict{.rounds = longest_message_chain(graph, order),
                   .bit_identical = bit_identical,
                   .sums_made_once = !holdings.expressions.has_repeated_sums()};
}

Result<Verdict> verify(const Schedule& schedule) {
    PCCL_ASSIGN_OR_RETURN(const Verdict verdict, verify(schedule, Placement::kOutOfPlace));
    if (schedule.shape.kind != CollectiveKind::kAllToAll)
        PCCL_TRY(verify(schedule, Placement::kInPlace).status());
    return verdict;
}

}  // namespace pccl::schedule
