// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/live_chunks.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/schedule/verifier/operands.h"

namespace pccl::schedule {
namespace {

constexpr double kUnwritten = -1;

/// Change of the held chunks at a time. At equal times, releases come before additions.
struct ChunkChange {
    double time = 0;
    long long chunks = 0;
    auto operator<=>(const ChunkChange&) const = default;
};

/// Record of the chunks that one rank holds.
class ChunkLedger {
   public:
    void hold(long long chunks, double from, double until) {
        if (until <= from) return;
        changes_.push_back({from, chunks});
        changes_.push_back({until, -chunks});
    }
    [[nodiscard]] long long peak() {
        std::ranges::sort(changes_);
        long long held = 0;
        long long most = 0;
        for (const ChunkChange& change : changes_) most = std::max(most, held += change.chunks);
        return most;
    }

   private:
    std::vector<ChunkChange> changes_;
};

/// Chunks of one rank's scratch, from their write to their last read.
class Scratch {
   public:
    Scratch(int chunks, ChunkLedger& ledger) : values_(at(chunks)), ledger_(ledger) {}

    void read(const Slices& slices, double time) {
        for_each_chunk(slices, [&](ChunkTimes& value) { value.read = std::max(value.read, time); });
    }
    void write(const Slices& slices, double time) {
        for_each_chunk(slices, [&](ChunkTimes& value) { end(std::exchange(value, {time, time})); });
    }
    void end_all() {
        for (const ChunkTimes& value : values_) end(value);
    }

   private:
    struct ChunkTimes {
        double written = kUnwritten;
        double read = kUnwritten;
    };

    template <typename Visit>
    void for_each_chunk(const Slices& slices, Visit visit) {
        for (const Slice& slice : slices) {
            if (slice.buffer != Buffer::kScratch) continue;
            for (int i = 0; i < slice.count; ++i) visit(values_[at(slice.offset + i)]);
        }
    }
    void end(const ChunkTimes& value) {
        if (value.written != kUnwritten) ledger_.hold(1, value.written, value.read);
    }

    std::vector<ChunkTimes> values_;
    ChunkLedger& ledger_;
};

}  // namespace

long long peak_chunks(const StepGraph& graph, const std::vector<Times>& times) {
    std::vector<ChunkLedger> ledgers(graph.played().programs.size());
    std::vector<std::vector<StepId>> steps(ledgers.size());
    for (StepId id = 0; id < graph.size(); ++id) {
        steps[at(graph[id].rank)].push_back(id);
        if (const StepId receiver = graph[id].receiver; receiver != kNoStep)
            ledgers[at(graph[receiver].rank)].hold(count_of(*graph[id].step), times[at(id)].start,
                                                   times[at(receiver)].start);
    }
    long long most = 0;
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
        std::ranges::sort(steps[rank], {}, [&](StepId id) { return times[at(id)].start; });
        Scratch scratch(graph.played().programs[rank].scratch_chunks, ledgers[rank]);
        for (const StepId id : steps[rank]) {
            const Accesses accesses = accesses_of(*graph[id].step);
            scratch.read(accesses.read, times[at(id)].done);
            scratch.read(accesses.update, times[at(id)].start);
            scratch.write(accesses.overwrite, times[at(id)].start);
        }
        scratch.end_all();
        most = std::max(most, ledgers[rank].peak());
    }
    return most;
}

}  // namespace pccl::schedule
