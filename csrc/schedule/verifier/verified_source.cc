#include "csrc/schedule/verifier/verified_source.h"

#include "csrc/base/digest.h"
#include "csrc/schedule/step_counts.h"

namespace pccl::schedule {
namespace {

StepCounts most_of(const Schedule& schedule) {
    StepCounts most;
    for (const Program& program : schedule.programs) most.include(program);
    return most;
}

}  // namespace

ScheduleSource source_of(const Schedule& verified, const Verdict& verdict, std::uint64_t digest) {
    const Shape shape = verified.shape;
    const StepCounts most = most_of(verified);
    const Cost a_byte = cost_of(most, verdict.rounds, shape.chunks);
    ScheduleSource source{
        .name = verified.name,
        .kind = shape.kind,
        .digest = digest,
        .only = shape,
        .slots = shape.slots,
        .swaps_operands = shape.kind == CollectiveKind::kAllReduce && !verdict.sums_made_once,
        .granularity = [chunks = shape.chunks](int /*ranks*/) { return chunks; },
        .longest_message = [most](const Shape& /*shape*/) { return most.longest_message; },
        .cost = [a_byte](const Shape& /*shape*/,
                         double block_bytes) { return scaled(a_byte, block_bytes); },
        .program = {}};
    source.program = [programs = verified.programs](const Shape& /*shape*/, Rank rank) {
        return programs[static_cast<std::size_t>(rank)];
    };
    return source;
}

Result<SourcePtr> source_of(const Schedule& schedule) {
    PCCL_ASSIGN_OR_RETURN(const Verdict verdict, verify(schedule));
    Digest digest;
    digest.add(to_string(schedule));
    return std::make_shared<const ScheduleSource>(source_of(schedule, verdict, digest.value()));
}

}  // namespace pccl::schedule
