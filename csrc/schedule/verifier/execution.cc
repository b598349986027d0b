// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>
#include <utility>

#include "csrc/schedule/moved_blocks.h"
#include "csrc/schedule/verifier/checks.h"
#include "csrc/schedule/verifier/expressions.h"
#include "csrc/schedule/verifier/operands.h"

namespace pccl::schedule {
namespace {

class Execution {
   public:
    Execution(const EventGraph& graph, const MemoryMap& memory)
        : graph_(graph),
          memory_(memory),
          tracks_blocks_(has_known_blocks(graph.schedule().shape.kind)),
          state_{.expressions =
                     Expressions(graph.schedule().shape.ranks, memory.chunks(0, Buffer::kInput)),
                 .held = std::vector(static_cast<std::size_t>(memory.places()), kUnwritten),
                 .writer = std::vector(static_cast<std::size_t>(memory.places()), kNoEvent)} {
        fill_inputs();
        lay_out_messages();
    }

    Result<Holdings> run(const std::vector<EventId>& order) {
        for (const EventId id : order) PCCL_TRY(perform(id));
        return std::move(state_);
    }

   private:
    void fill_inputs() {
        for (Rank rank = 0; rank < graph_.schedule().shape.ranks; ++rank) {
            if (!memory_.exists(rank, Buffer::kInput)) continue;
            for (int i = 0; i < memory_.chunks(rank, Buffer::kInput); ++i) {
                held(rank, {Buffer::kInput, i, 1}) = state_.expressions.input({rank, i});
            }
        }
    }

    void lay_out_messages() {
        std::size_t end = 0;
        std::size_t chunks = 0;
        for (EventId id = 0; id < graph_.size(); ++id) {
            message_at_.push_back(end);
            if (tracks_blocks_) moved_at_.push_back(chunks);
            const Step& step = *graph_.event(id).step;
            const auto count = static_cast<std::size_t>(count_of(step));
            if (step.to.is_used()) end += count;
            chunks += count;
        }
        messages_.resize(end);
        if (tracks_blocks_) state_.moved.resize(chunks);
    }

    /// Returns the block of an expression of all_gather or reduce_scatter.
    [[nodiscard]] Rank block_of(Expression expression) const {
        const Shape& shape = graph_.schedule().shape;
        const ChunkContribution part = state_.expressions.one_of(expression);
        return shape.kind == CollectiveKind::kAllGather ? part.rank : part.chunk / shape.chunks;
    }

    [[nodiscard]] std::size_t place(Rank rank, const Slice& chunk) const {
        return static_cast<std::size_t>(memory_.place(rank, chunk));
    }
    Expression& held(Rank rank, const Slice& chunk) { return state_.held[place(rank, chunk)]; }
    Expression& message(EventId sender, int i) {
        return messages_[message_at_[static_cast<std::size_t>(sender)] +
                         static_cast<std::size_t>(i)];
    }

    Status perform(EventId id) {
        const Step& step = *graph_.event(id).step;
        const Rank rank = graph_.lane_of(id).rank;
        const Accesses accesses = accesses_of(step);
        std::array operands{ChunkWalk(accesses.update), ChunkWalk(accesses.read)};
        ChunkWalk results(step.dst);
        const int count = count_of(step);
        for (int i = 0; i < count; ++i) {
            PCCL_ASSIGN_OR_RETURN(const Expression result, result_of(id, i, operands));
            if (results.has_next()) {
                const std::size_t where = place(rank, results.next());
                state_.held[where] = result;
                state_.writer[where] = id;
            }
            if (step.to.is_used()) message(id, i) = result;
            if (tracks_blocks_)
                state_
                    .moved[moved_at_[static_cast<std::size_t>(id)] + static_cast<std::size_t>(i)] =
                    block_of(result);
        }
        return Status::ok();
    }

    /// Returns the result of the step for the i-th chunk: the sum of its operands, received or in
    /// memory.
    Result<Expression> result_of(EventId id, int i, std::span<ChunkWalk> operands) {
        const Step& step = *graph_.event(id).step;
        Expression result = kUnwritten;
        if (step.from.is_used()) result = message(graph_.event(id).sender, i);
        for (ChunkWalk& walk : operands) {
            if (!walk.has_next()) continue;
            const Slice chunk = walk.next();
            const Expression operand = held(graph_.lane_of(id).rank, chunk);
            if (operand == kUnwritten) {
                return fault(graph_.place_of(id), step, "reads ", to_string(chunk.buffer), "[",
                             chunk.offset, "], which no earlier step writes");
            }
            PCCL_TRY(check_same_part(id, chunk));
            result = result == kUnwritten ? operand : state_.expressions.sum(operand, result, id);
        }
        return result;
    }

    [[nodiscard]] Status check_same_part(EventId reader, const Slice& chunk) const {
        if (chunk.buffer != Buffer::kScratch) return Status::ok();
        const EventId writer = state_.writer[place(graph_.lane_of(reader).rank, chunk)];
        if (graph_.event(writer).part == graph_.event(reader).part) return Status::ok();
        return fault(graph_.place_of(reader), *graph_.event(reader).step, "reads scratch[",
                     chunk.offset, "], which ", graph_.describe(writer),
                     " wrote in another phase of the network; scratch does not outlive a switch");
    }

    const EventGraph& graph_;
    const MemoryMap& memory_;
    const bool tracks_blocks_;
    Holdings state_;
    std::vector<std::size_t> message_at_;  // by sending event
    std::vector<std::size_t> moved_at_;    // by event
    std::vector<Expression> messages_;
};

}  // namespace

Result<Holdings> run_on_expressions(const EventGraph& graph, const std::vector<EventId>& order,
                                    const MemoryMap& memory) {
    return Execution(graph, memory).run(order);
}

}  // namespace pccl::schedule
