// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/postcondition.h"

#include <algorithm>
#include <utility>

#include "csrc/schedule/verifier/fault.h"

namespace pccl::schedule {
namespace {

/// Required content of an output chunk: input chunk `chunk` of `rank`, or the sum of that chunk
/// over all ranks.
struct Promise {
    int chunk = 0;
    Rank rank = 0;
    bool is_sum = false;
};

Promise promise_for(const Shape& shape, Rank rank, int output_chunk) {
    const int in_block = output_chunk % shape.chunks;
    const int own_block = rank * shape.chunks + in_block;
    const Rank block = output_chunk / shape.chunks;
    switch (shape.kind) {
        case CollectiveKind::kAllReduce:
        case CollectiveKind::kReduce:
            return {.chunk = output_chunk, .is_sum = true};
        case CollectiveKind::kReduceScatter:
            return {.chunk = own_block, .is_sum = true};
        case CollectiveKind::kAllGather:
        case CollectiveKind::kGather:
            return {.chunk = in_block, .rank = block};
        case CollectiveKind::kBroadcast:
            return {.chunk = output_chunk, .rank = shape.root};
        case CollectiveKind::kScatter:
            return {.chunk = own_block, .rank = shape.root};
        case CollectiveKind::kAllToAll:
            return {.chunk = own_block, .rank = block};
    }
    return {};
}

/// One chunk of the output of one rank.
struct OutputChunk {
    Rank rank = 0;
    int chunk = 0;
    std::size_t place = 0;
};

class PostconditionCheck {
   public:
    PostconditionCheck(const EventGraph& graph, const MemoryMap& memory, const Holdings& holdings)
        : graph_(graph),
          shape_(graph.schedule().shape),
          memory_(memory),
          holdings_(holdings),
          found_right_(static_cast<std::size_t>(memory.chunks(0, Buffer::kInput)), kUnwritten) {}

    Result<bool> run() {
        for (Rank rank = 0; rank < shape_.ranks; ++rank) {
            if (!memory_.exists(rank, Buffer::kOutput)) continue;
            for (int i = 0; i < memory_.chunks(rank, Buffer::kOutput); ++i) {
                const int place = memory_.place(rank, {Buffer::kOutput, i, 1});
                PCCL_TRY(check({rank, i, static_cast<std::size_t>(place)}));
            }
        }
        return bit_identical_;
    }

   private:
    Status check(const OutputChunk& spot) {
        const Promise promise = promise_for(shape_, spot.rank, spot.chunk);
        if (holdings_.held[spot.place] == kUnwritten) {
            return wrong(spot, promise, "holds nothing");
        }
        return promise.is_sum ? check_sum(spot, promise) : check_single(spot, promise);
    }

    [[nodiscard]] Status check_single(const OutputChunk& spot, const Promise& promise) const {
        const Expression held = holdings_.held[spot.place];
        const ChunkContribution wanted{promise.rank, promise.chunk};
        if (held == holdings_.expressions.input(wanted)) return Status::ok();
        const auto found = holdings_.expressions.contributions(held, 2);
        return wrong(spot, promise, "holds ", found.size() > 1 ? "a sum with " : "",
                     to_string(found[0]));
    }

    Status check_sum(const OutputChunk& spot, const Promise& promise) {
        const Expression held = holdings_.held[spot.place];
        Expression& right = found_right_[static_cast<std::size_t>(promise.chunk)];
        if (held == right) return Status::ok();
        PCCL_TRY(check_contributions(spot, promise));
        if (right != kUnwritten) bit_identical_ = false;
        right = held;
        return Status::ok();
    }

    /// Checks that every rank contributes the right chunk exactly once. n+1 contributions suffice
    /// to find an error: with n valid ones, one of them is wrong or repeated.
    [[nodiscard]] Status check_contributions(const OutputChunk& spot,
                                             const Promise& promise) const {
        const Expression held = holdings_.held[spot.place];
        auto found = holdings_.expressions.contributions(held, shape_.ranks + 1);
        std::ranges::sort(found);
        const auto stray = std::ranges::find_if(
            found, [&](const ChunkContribution& part) { return part.chunk != promise.chunk; });
        if (stray != found.end()) return wrong(spot, promise, "is a sum with ", to_string(*stray));
        const auto twice = std::ranges::adjacent_find(found);
        if (twice != found.end()) {
            const EventId maker = holdings_.expressions.who_added_again(held, *twice);
            return fault(graph_.place_of(maker), *graph_.event(maker).step, "adds ",
                         to_string(*twice), " a second time on its way to output[", spot.chunk,
                         "] of rank ", spot.rank, "; it must be added once");
        }
        if (std::cmp_equal(found.size(), shape_.ranks)) return Status::ok();
        Rank missing = 0;
        for (const ChunkContribution& part : found) missing += part.rank == missing ? 1 : 0;
        return wrong(spot, promise, "lacks ", to_string(ChunkContribution{missing, promise.chunk}));
    }

    template <typename... Parts>
    [[nodiscard]] Status wrong(const OutputChunk& spot, const Promise& promise,
                               const Parts&... what) const {
        const std::string wanted =
            promise.is_sum ? concat("the sum over all ranks of their input[", promise.chunk, "]")
                           : to_string(ChunkContribution{promise.rank, promise.chunk});
        const EventId writer = holdings_.writer[spot.place];
        if (writer == kNoEvent)
            return Status::invalid_argument(concat("no step of rank ", spot.rank, " writes output[",
                                                   spot.chunk, "]; it must hold ", wanted,
                                                   own_copy(spot.rank, promise)));
        return Status::invalid_argument(concat(graph_.describe(writer),
                                               ", which writes it last: output[", spot.chunk, "] ",
                                               what..., "; it must hold ", wanted));
    }

    /// Returns a hint for a missing own block, which no message carries.
    [[nodiscard]] static std::string own_copy(Rank rank, const Promise& promise) {
        if (promise.is_sum || promise.rank != rank) return {};
        return concat(", its own: copy it there (c.input(", rank, ").copy_to(", rank, "))");
    }

    const EventGraph& graph_;
    const Shape& shape_;
    const MemoryMap& memory_;
    const Holdings& holdings_;
    std::vector<Expression> found_right_;  // by input chunk: its last sum that passed the check
    bool bit_identical_ = true;
};

}  // namespace

Result<bool> check_postcondition(const EventGraph& graph, const MemoryMap& memory,
                                 const Holdings& holdings) {
    return PostconditionCheck(graph, memory, holdings).run();
}

}  // namespace pccl::schedule
