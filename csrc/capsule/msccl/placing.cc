// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/msccl/placing.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/capsule/limits.h"

namespace pccl::capsule::msccl {
namespace {

using schedule::Buffer;
using schedule::CollectiveKind;
using schedule::Slice;
using schedule::Slices;

constexpr int kUnknown = -1;

bool writes_input(const Algo& algo) {
    for (const AlgoGpu& gpu : algo.gpus)
        for (const ThreadBlock& block : gpu.blocks)
            for (const AlgoStep& step : block.steps)
                if (has_dst(step.action) && step.dst.buffer == Buffer::kInput) return true;
    return false;
}

/// Run of chunks in MSCCL's numbering.
struct ChunkRun {
    Rank rank = 0;
    ChunkSpan span;
    int count = 0;
    const AlgoStep* step = nullptr;
};

/// Runs that hold the same chunks, one by one.
class Ties {
   public:
    explicit Ties(const Algo& algo) {
        for (Rank rank = 0; rank < static_cast<Rank>(algo.gpus.size()); ++rank)
            for (const ThreadBlock& block : algo.gpus[static_cast<std::size_t>(rank)].blocks)
                for (const AlgoStep& step : block.steps) add(rank, step);
        for (const auto& [queue, sent] : sent_) {
            const auto& received = received_[queue];
            for (std::size_t i = 0; i < std::min(sent.size(), received.size()); ++i)
                pairs_.emplace_back(sent[i], received[i]);
        }
    }
    [[nodiscard]] const std::vector<std::pair<ChunkRun, ChunkRun>>& pairs() const { return pairs_; }

   private:
    using Queue = std::tuple<Rank, Rank, ChannelId>;

    void add(Rank rank, const AlgoStep& step) {
        const ChunkRun src{rank, step.src, step.count, &step};
        const ChunkRun dst{rank, step.dst, step.count, &step};
        if (has_src(step.action) && has_dst(step.action)) pairs_.emplace_back(src, dst);
        const ChunkRun& moved = has_dst(step.action) ? dst : src;
        if (step.to.is_used()) sent_[{rank, step.to.peer, step.to.channel}].push_back(moved);
        if (step.from.is_used())
            received_[{step.from.peer, rank, step.from.channel}].push_back(moved);
    }

    std::vector<std::pair<ChunkRun, ChunkRun>> pairs_;
    std::map<Queue, std::vector<ChunkRun>> sent_;
    std::map<Queue, std::vector<ChunkRun>> received_;
};

/// Index within a block of each chunk of MSCCL's scratch, for all ranks: chunks that hold the same
/// value have the same index (disjoint sets with path halving).
class Indices {
   public:
    explicit Indices(const Algo& algo) {
        for (const AlgoGpu& gpu : algo.gpus) {
            begin_.push_back(first_.size());
            for (int i = 0; i < gpu.scratch_chunks; ++i) first_.push_back(first_.size());
        }
        index_.assign(first_.size(), kUnknown);
    }
    [[nodiscard]] std::size_t of(Rank rank, int chunk) const {
        return begin_[static_cast<std::size_t>(rank)] + static_cast<std::size_t>(chunk);
    }
    [[nodiscard]] std::size_t of(const ChunkRun& run, int i) const {
        return of(run.rank, run.span.offset + i);
    }
    [[nodiscard]] int index(std::size_t chunk) { return index_[first_of(chunk)]; }

    /// Sets the index of a chunk; returns false if it has a different one.
    bool settle(std::size_t chunk, int index) {
        int& known = index_[first_of(chunk)];
        if (known == kUnknown) known = index;
        return known == index;
    }
    bool tie(std::size_t a, std::size_t b) {
        const std::size_t first = first_of(a);
        const std::size_t other = first_of(b);
        if (index_[other] != kUnknown && !settle(first, index_[other])) return false;
        first_[other] = first;
        return true;
    }

   private:
    std::size_t first_of(std::size_t chunk) {
        while (first_[chunk] != chunk) chunk = first_[chunk] = first_[first_[chunk]];
        return chunk;
    }

    std::vector<std::size_t> begin_;  // by rank
    std::vector<std::size_t> first_;  // by chunk: next chunk towards the first of its set
    std::vector<int> index_;          // of the first of each set
};

Status unlike(const ChunkRun& run, int i, const Algo& algo) {
    return Status::unsupported(concat(
        algo.place(run.step->origin), ": scratch chunk ", run.span.offset + i, " of gpu ", run.rank,
        " holds chunks of blocks with unlike indices; chunks of a block may differ "
        "in length, so that a place in scratch is for those of one index"));
}

}  // namespace

std::vector<Working> ways_of(const Algo& algo) {
    std::vector<Working> ways;
    if (!writes_input(algo)) ways.push_back(Working::kDirectly);
    const bool has_room =
        algo.kind == CollectiveKind::kAllReduce || algo.kind == CollectiveKind::kAllGather;
    if (algo.in_place && has_room) ways.push_back(Working::kInOutput);
    ways.push_back(Working::kInScratch);
    return ways;
}

Result<Placing> Placing::make(const Algo& algo, Working working) {
    Placing placing(algo, working);
    for (const AlgoGpu& gpu : algo.gpus)
        placing.index_.emplace_back(static_cast<std::size_t>(gpu.scratch_chunks), kUnknown);
    for (Rank rank = 0; rank < placing.ranks(); ++rank)
        for (const ThreadBlock& block : algo.gpus[static_cast<std::size_t>(rank)].blocks)
            for (const AlgoStep& step : block.steps) {
                if (has_src(step.action)) PCCL_TRY(placing.check(step, rank, step.src));
                if (has_dst(step.action)) PCCL_TRY(placing.check(step, rank, step.dst));
            }
    PCCL_TRY(placing.find_indices());
    PCCL_TRY(placing.number_scratch());
    return placing;
}

Status Placing::check(const AlgoStep& step, Rank rank, const ChunkSpan& span) const {
    const int chunks = span.buffer == Buffer::kScratch
                           ? algo_->gpus[static_cast<std::size_t>(rank)].scratch_chunks
                           : chunks_of(span.buffer);
    if (span.offset <= chunks && step.count <= chunks - span.offset) return Status::ok();
    return Status::invalid_argument(concat(algo_->place(step.origin), ": chunks ", span.offset,
                                           " to ", span.offset + step.count - 1, " are not in ",
                                           to_string(span.buffer), ", which has ", chunks));
}

int Placing::chunks_of(Buffer buffer) const {
    return schedule::blocks(algo_->kind, buffer, ranks()) * algo_->chunks;
}

bool Placing::works_on_one_buffer() const {
    return algo_->in_place && working_ == Working::kInScratch;
}

Slice Placing::place(Rank rank, Buffer buffer, int chunk) const {
    const int own = rank * algo_->chunks;
    const bool gathers = schedule::blocks(algo_->kind, Buffer::kOutput, ranks()) > 1;
    const bool scatters = schedule::blocks(algo_->kind, Buffer::kInput, ranks()) > 1;
    if (buffer == Buffer::kInput && working_ == Working::kInOutput)
        return {Buffer::kOutput, chunk + (gathers ? own : 0), 1};
    // In place, the smaller of input and output is this rank's block of the other.
    if (buffer == Buffer::kInput && working_ == Working::kInScratch)
        return {Buffer::kScratch, chunk + (works_on_one_buffer() && gathers && !scatters ? own : 0),
                1};
    if (buffer == Buffer::kOutput && works_on_one_buffer())
        return {Buffer::kScratch, chunk + (scatters && !gathers ? own : 0), 1};
    return {buffer, chunk, 1};
}

Status Placing::find_indices() {
    Indices indices(*algo_);
    const Ties ties(*algo_);
    for (const auto& [a, b] : ties.pairs())
        for (int i = 0; i < std::min(a.count, b.count); ++i) {
            const auto index_of = [&](const ChunkRun& run) {
                return place(run.rank, run.span.buffer, run.span.offset + i).offset % algo_->chunks;
            };
            const bool a_is_scratch = a.span.buffer == Buffer::kScratch;
            const bool b_is_scratch = b.span.buffer == Buffer::kScratch;
            bool agree = true;
            if (a_is_scratch && b_is_scratch)
                agree = indices.tie(indices.of(a, i), indices.of(b, i));
            else if (a_is_scratch)
                agree = indices.settle(indices.of(a, i), index_of(b));
            else if (b_is_scratch)
                agree = indices.settle(indices.of(b, i), index_of(a));
            if (!agree) return unlike(a_is_scratch ? a : b, i, *algo_);
        }
    for (Rank rank = 0; rank < ranks(); ++rank)
        for (std::size_t chunk = 0; chunk < index_[static_cast<std::size_t>(rank)].size(); ++chunk)
            index_[static_cast<std::size_t>(rank)][chunk] =
                indices.index(indices.of(rank, static_cast<int>(chunk)));
    return Status::ok();
}

Status Placing::number_scratch() {
    const int own = working_ == Working::kInScratch ? chunks_of(Buffer::kInput) : 0;
    const int whole = works_on_one_buffer() ? std::max(own, chunks_of(Buffer::kOutput)) : own;
    for (const std::vector<int>& indices : index_) {
        std::vector<int> rows(static_cast<std::size_t>(algo_->chunks), whole / algo_->chunks);
        std::vector<int> numbers;
        int size = whole;
        for (const int index : indices) {
            int& row = rows[static_cast<std::size_t>(std::max(index, 0))];
            const long long number =
                static_cast<long long>(row++) * algo_->chunks + std::max(index, 0);
            if (number >= kMostPlaces)
                return Status::unsupported(
                    concat("gpu ", numbers_.size(), " has ", indices.size(),
                           " chunks of scratch, which take more than ", kMostPlaces,
                           " where each has the index that it has in a block"));
            numbers.push_back(static_cast<int>(number));
            size = std::max(size, numbers.back() + 1);
        }
        numbers_.push_back(std::move(numbers));
        scratch_chunks_.push_back(size);
    }
    return Status::ok();
}

Slices Placing::slices(Rank rank, const ChunkSpan& span, int count) const {
    Slices slices;
    for (int i = 0; i < count; ++i) {
        const int chunk = span.offset + i;
        slices.add(
            span.buffer == Buffer::kScratch
                ? Slice{Buffer::kScratch,
                        numbers_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chunk)],
                        1}
                : place(rank, span.buffer, chunk));
    }
    return slices;
}

std::optional<Placing::OuterCopy> Placing::copy_in(Rank rank) const {
    if (working_ == Working::kDirectly) return std::nullopt;
    const bool at_root =
        algo_->kind == CollectiveKind::kBroadcast || algo_->kind == CollectiveKind::kScatter;
    if (at_root && rank != algo_->root) return std::nullopt;
    const int chunks = schedule::blocks(algo_->kind, Buffer::kInput, ranks()) * algo_->chunks;
    return OuterCopy{.src = {Buffer::kInput, 0, chunks},
                     .dst = slices(rank, {.buffer = Buffer::kInput}, chunks)};
}

std::optional<Placing::OuterCopy> Placing::copy_out(Rank rank) const {
    if (!works_on_one_buffer()) return std::nullopt;
    const bool at_root =
        algo_->kind == CollectiveKind::kReduce || algo_->kind == CollectiveKind::kGather;
    if (at_root && rank != algo_->root) return std::nullopt;
    const int chunks = schedule::blocks(algo_->kind, Buffer::kOutput, ranks()) * algo_->chunks;
    return OuterCopy{.src = slices(rank, {.buffer = Buffer::kOutput}, chunks),
                     .dst = {Buffer::kOutput, 0, chunks}};
}

}  // namespace pccl::capsule::msccl
