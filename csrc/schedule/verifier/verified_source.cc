// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/verified_source.h"

#include <memory>
#include <utility>

#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/schedule/phase_parts.h"
#include "csrc/schedule/step_counts.h"

namespace pccl::schedule {
namespace {

StepCounts most_of(const Schedule& schedule) {
    StepCounts most;
    for (const Program& program : schedule.programs) most.include(program);
    return most;
}

}  // namespace

ScheduleSource source_of(const std::shared_ptr<const Schedule>& verified, const Verdict& verdict,
                         std::uint64_t digest) {
    const Shape shape = verified->shape;
    const StepCounts most = most_of(*verified);
    const Cost a_byte = cost_of(most, verdict.rounds, shape.chunks);
    ScheduleSource source{
        .name = verified->name,
        .kind = shape.kind,
        .digest = digest,
        .only = shape,
        .slots = shape.slots,
        .takes_uneven = verdict.takes_uneven,
        .swaps_operands = shape.kind == CollectiveKind::kAllReduce && !verdict.sums_made_once,
        .granularity = [chunks = shape.chunks](int /*ranks*/) { return chunks; },
        .longest_message = [most](const Shape& /*shape*/) { return most.longest_message; },
        .cost = [a_byte](const Shape& /*shape*/,
                         double block_bytes) { return scaled(a_byte, block_bytes); },
        .program = {}};
    source.program = [verified](const Shape& /*shape*/, Rank rank) {
        return verified->programs[static_cast<std::size_t>(rank)];
    };
    return source;
}

std::vector<PartSource> part_sources_of(const Schedule& verified, const Verdict& verdict,
                                        std::uint64_t digest) {
    // The parts need the whole schedule's value: with windows, the size of a chunk depends on the
    // longest message.
    const int longest_message = most_of(verified).longest_message;
    std::vector<PartSource> sources;
    for (PhasePart& part : parts_of(verified)) {
        auto& [phase, source] = sources.emplace_back(PartSource{.phase = part.phase, .source = {}});
        if (part.is_empty()) continue;
        const std::string name = concat(verified.name, "#", sources.size() - 1);
        Digest own;
        own.add(concat(digest, name));
        const auto schedule = std::make_shared<const Schedule>(
            Schedule{.name = name, .shape = verified.shape, .programs = std::move(part.programs)});
        ScheduleSource alone = source_of(schedule, verdict, own.value());
        alone.longest_message = [longest_message](const Shape& /*shape*/) {
            return longest_message;
        };
        source = std::make_shared<const ScheduleSource>(std::move(alone));
    }
    return sources;
}

Result<SourcePtr> source_of(const Schedule& schedule) {
    PCCL_ASSIGN_OR_RETURN(const Verdict verdict, verify(schedule));
    Digest digest;
    digest.add(to_string(schedule));
    return std::make_shared<const ScheduleSource>(
        source_of(std::make_shared<const Schedule>(schedule), verdict, digest.value()));
}

}  // namespace pccl::schedule
