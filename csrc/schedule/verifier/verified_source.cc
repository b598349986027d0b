#include "csrc/schedule/verifier/verified_source.h"

#include <utility>

#include "csrc/base/digest.h"
#include "csrc/schedule/step_counts.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::schedule {
namespace {

StepCounts most_of(const Schedule& schedule) {
    StepCounts most;
    for (const Program& program : schedule.programs) most.include(program);
    return most;
}

}  // namespace

Result<SourcePtr> source_of(Schedule schedule) {
    PCCL_ASSIGN_OR_RETURN(const Verdict verdict, verify(schedule));
    const Shape shape = schedule.shape;
    const StepCounts most = most_of(schedule);
    const Cost a_byte = cost_of(most, verdict.rounds, shape.chunks);
    Digest digest;
    digest.add(to_string(schedule));
    ScheduleSource source{
        .name = schedule.name,
        .kind = shape.kind,
        .digest = digest.value(),
        .only = shape,
        .slots = shape.slots,
        .swaps_operands = shape.kind == CollectiveKind::kAllReduce,  // as far as anybody knows
        .granularity = [chunks = shape.chunks](int /*ranks*/) { return chunks; },
        .longest_message = [most](const Shape& /*shape*/) { return most.longest_message; },
        .cost = [a_byte](const Shape& /*shape*/,
                         double block_bytes) { return scaled(a_byte, block_bytes); },
        .program = {}};
    source.program = [programs = std::move(schedule.programs)](const Shape& /*shape*/, Rank rank) {
        return programs[static_cast<std::size_t>(rank)];
    };
    return std::make_shared<const ScheduleSource>(std::move(source));
}

}  // namespace pccl::schedule
