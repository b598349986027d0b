#include "csrc/schedule/verifier/verified_source.h"

#include <algorithm>
#include <utility>

#include "csrc/base/digest.h"
#include "csrc/schedule/verifier/operands.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::schedule {
namespace {

bool reduces_memory(Action action) {
    return action == Action::kReduce || action == Action::kRecvReduce ||
           action == Action::kRecvReduceSend || action == Action::kRecvReduceCopySend;
}

/// What the steps of a rank, or of the rank with the most, move: in chunks.
struct Counts {
    long long sent = 0;
    long long received = 0;
    long long chunks_sent = 0;
    long long chunks_received = 0;
    long long chunks_reduced = 0;
    int longest = 1;

    void add(const Step& step) {
        const int chunks = count_of(step);
        sent += step.to.is_used() ? 1 : 0;
        received += step.from.is_used() ? 1 : 0;
        chunks_sent += step.to.is_used() ? chunks : 0;
        chunks_received += step.from.is_used() ? chunks : 0;
        if (step.to.is_used() || step.from.is_used()) longest = std::max(longest, chunks);
        if (reduces_memory(step.action)) chunks_reduced += chunks;
    }
    void raise_to(const Counts& other) {
        sent = std::max({sent, other.sent, other.received});
        chunks_sent = std::max({chunks_sent, other.chunks_sent, other.chunks_received});
        chunks_reduced = std::max(chunks_reduced, other.chunks_reduced);
        longest = std::max(longest, other.longest);
    }
};

Counts most_of(const Schedule& schedule) {
    Counts most;
    for (const Program& program : schedule.programs) {
        Counts counts;
        for (const Lane& lane : program.lanes)
            for (const Step& step : lane) counts.add(step);
        most.raise_to(counts);
    }
    return most;
}

/// In blocks of one byte.
Cost cost_of(const Counts& most, int rounds, int chunks) {
    return {.rounds = rounds,
            .messages = most.sent,
            .bytes_sent = static_cast<double>(most.chunks_sent) / chunks,
            .bytes_reduced = static_cast<double>(most.chunks_reduced) / chunks};
}

}  // namespace

Result<SourcePtr> source_of(Schedule schedule) {
    PCCL_ASSIGN_OR_RETURN(const Verdict verdict, verify(schedule));
    const Shape shape = schedule.shape;
    const Counts most = most_of(schedule);
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
        .longest_message = [most](const Shape& /*shape*/) { return most.longest; },
        .cost =
            [a_byte](const Shape& /*shape*/, double block_bytes) {
                Cost cost = a_byte;
                cost.bytes_sent *= block_bytes;
                cost.bytes_reduced *= block_bytes;
                return cost;
            },
        .program = {}};
    source.program = [programs = std::move(schedule.programs)](const Shape& /*shape*/, Rank rank) {
        return programs[static_cast<std::size_t>(rank)];
    };
    return std::make_shared<const ScheduleSource>(std::move(source));
}

}  // namespace pccl::schedule
