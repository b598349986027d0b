// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/two_sided.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/capsule/limits.h"
#include "csrc/capsule/mscclpp/execution.h"

namespace pccl::capsule::mscclpp {
namespace {

using msccl::Algo;
using msccl::AlgoStep;
using msccl::ChunkSpan;
using schedule::Action;

using BlockPair = std::tuple<Rank, Rank, std::size_t, std::size_t>;

BlockPair blocks_of(const Delivery& each) {
    return {each.sent.gpu, each.received.gpu, each.sent.block, each.received.block};
}

/// Returns whether `a` is sent before `b` by one thread block: at one operation, messages are sent
/// in the order of their receipts.
bool sent_before(const Delivery& a, const Delivery& b) {
    return std::tie(a.sent, a.is_read, a.received, a.src, a.dst) <
           std::tie(b.sent, b.is_read, b.received, b.src, b.dst);
}

/// Returns whether `a` is received before `b` by one thread block; otherwise like sent_before().
bool received_before(const Delivery& a, const Delivery& b) {
    return std::tie(a.received, a.is_read, a.sent, a.src, a.dst) <
           std::tie(b.received, b.is_read, b.sent, b.src, b.dst);
}

/// Assigns a channel to each message. The messages of a channel go from one thread block to one
/// other, which receives them in the order of their sending.
void assign_channels(std::vector<Delivery>& deliveries) {
    std::vector<Delivery*> sorted;
    sorted.reserve(deliveries.size());
    for (Delivery& each : deliveries) sorted.push_back(&each);
    std::ranges::sort(sorted, [](const Delivery* a, const Delivery* b) {
        return blocks_of(*a) != blocks_of(*b) ? blocks_of(*a) < blocks_of(*b) : sent_before(*a, *b);
    });
    std::map<BlockPair, std::vector<Delivery*>> last;  // last messages of each channel
    std::map<std::pair<Rank, Rank>, int> count;
    for (Delivery* const each : sorted) {
        auto& channels = last[blocks_of(*each)];
        const auto fits = std::ranges::find_if(
            channels, [&](const Delivery* before) { return received_before(*before, *each); });
        if (fits != channels.end()) {
            each->channel = (*fits)->channel;
            *fits = each;
            continue;
        }
        each->channel = count[{each->sent.gpu, each->received.gpu}]++;
        channels.push_back(each);
    }
}

ChunkSpan span_of(const Chunks& chunks) { return {chunks.buffer, chunks.index}; }

/// Messages of each operation, in order.
struct OperationMessages {
    explicit OperationMessages(std::vector<Delivery> deliveries) {
        assign_channels(deliveries);
        std::ranges::sort(deliveries, sent_before);
        for (const Delivery& each : deliveries) sent[each.sent].push_back(each);
        std::ranges::sort(deliveries, received_before);
        for (const Delivery& each : deliveries)
            (each.is_read ? read : received)[each.received].push_back(each);
    }
    std::map<At, std::vector<Delivery>> sent;
    std::map<At, std::vector<Delivery>> received;
    std::map<At, std::vector<Delivery>> read;
};

std::vector<Delivery> those_of(const std::map<At, std::vector<Delivery>>& all, const At& at) {
    const auto found = all.find(at);
    return found == all.end() ? std::vector<Delivery>{} : found->second;
}

/// Translation of one plan's programs, one operation after the other.
class Translation {
   public:
    Translation(const MscclppPlan& plan, const RunResult& execution, std::vector<At>& places)
        : plan_(plan), execution_(execution), messages_(execution.deliveries), places_(places) {}

    msccl::AlgoGpu gpu(Rank rank) {
        const PlanGpu& gpu = plan_.gpu(rank);
        at_ = {rank, 0, 0};
        made_ = {.origin = origin(), .scratch_chunks = gpu.scratch_chunks, .blocks = {}};
        first_step_.assign(gpu.blocks.size(), {});
        for (std::size_t block = 0; block < gpu.blocks.size(); ++block) {
            made_.blocks.emplace_back();
            for (std::size_t op = 0; op < gpu.blocks[block].size(); ++op) {
                at_ = {rank, block, op};
                first_step_[block].push_back(steps().size());
                perform(gpu.blocks[block][op]);
            }
            first_step_[block].push_back(steps().size());
        }
        add_waits(rank);
        return std::move(made_);
    }

   private:
    std::vector<AlgoStep>& steps() { return made_.blocks.back().steps; }

    /// Returns the place in the plan from which a step originates.
    msccl::FileOffset origin() {
        places_.push_back(at_);
        return static_cast<msccl::FileOffset>(places_.size()) - 1;
    }

    void perform(const PlanOperation& operation) {
        const std::size_t before = steps().size();
        for (const Delivery& each : those_of(messages_.received, at_)) receive(each);
        if (operation.kind == InstructionKind::kMove) move(operation);
        if (operation.kind == InstructionKind::kReduce) reduce(operation);
        for (const Delivery& each : those_of(messages_.sent, at_)) send(each);
        if (steps().size() == before && execution_.waits.contains(at_))
            add(Action::kNop, {}, {}, 0);
    }

    AlgoStep& add(Action action, const ChunkSpan& src, const ChunkSpan& dst, int count) {
        steps().push_back(
            {.origin = origin(), .action = action, .src = src, .dst = dst, .count = count});
        return steps().back();
    }
    void send(const Delivery& each) {
        add(Action::kSend, span_of(each.src), {}, each.src.size).to = {each.dst.rank, each.channel};
    }
    void receive(const Delivery& each) {
        add(Action::kRecv, {}, span_of(each.dst), each.dst.size).from = {each.sent.gpu,
                                                                         each.channel};
    }

    void move(const PlanOperation& operation) {
        for (std::size_t i = 0; i < operation.src.size(); ++i)
            if (operation.src[i].rank == at_.gpu && operation.dst[i].rank == at_.gpu)
                add(Action::kCopy, span_of(operation.src[i]), span_of(operation.dst[i]),
                    operation.src[i].size);
        for (const Delivery& each : those_of(messages_.read, at_)) receive(each);
    }

    /// Reduces into the first of dst, starting with its present content if it is one of src.
    void reduce(const PlanOperation& operation) {
        const Chunks& sum = operation.dst.front();
        const auto is_sum = [&](const Chunks& each) {
            return each.rank == sum.rank && each.buffer == sum.buffer && each.index == sum.index;
        };
        std::vector<Chunks> own;
        std::ranges::copy_if(operation.src, std::back_inserter(own), [&](const Chunks& each) {
            return each.rank == at_.gpu && !is_sum(each);
        });
        const bool has_sum = std::ranges::any_of(operation.src, is_sum);
        const auto is_whole = [&](const Delivery& each) { return each.dst.size == sum.size; };
        const std::vector<Delivery> reads = those_of(messages_.read, at_);
        std::optional<ChunkSpan> begun;
        if (has_sum) begun = span_of(sum);
        auto next = own.begin();
        if (!begun && next != own.end()) {
            begun = span_of(*next++);
            if (reads.empty() || !std::ranges::all_of(reads, is_whole)) {
                add(Action::kCopy, *begun, span_of(sum), sum.size);
                begun = span_of(sum);
            }
        }
        for (const Delivery& each : reads) {
            ChunkSpan with = begun.value_or(ChunkSpan{});
            with.offset += each.dst.index - sum.index;
            AlgoStep& step = add(begun ? Action::kRecvReduce : Action::kRecv, with,
                                 span_of(each.dst), each.dst.size);
            step.from = {each.sent.gpu, each.channel};
            if (is_whole(each)) begun = span_of(sum);
        }
        for (; next != own.end(); ++next)
            add(Action::kReduce, span_of(*next), span_of(sum), sum.size);
        for (std::size_t i = 1; i < operation.dst.size(); ++i)
            if (operation.dst[i].rank == at_.gpu)
                add(Action::kCopy, span_of(sum), span_of(operation.dst[i]), sum.size);
    }

    /// Adds the waits: the first step of an operation waits for the operations of the other thread
    /// blocks that precede it.
    void add_waits(Rank rank) {
        const auto end = execution_.waits.lower_bound({rank + 1, 0, 0});
        for (auto each = execution_.waits.lower_bound({rank, 0, 0}); each != end; ++each) {
            const auto& [at, waits] = *each;
            AlgoStep& step = made_.blocks[at.block].steps[first_step_[at.block][at.op]];
            for (const Wait& wait : waits)
                if (const std::size_t steps = first_step_[wait.block][wait.ops]; steps > 0)
                    step.after.push_back(
                        {static_cast<int>(wait.block), static_cast<int>(steps) - 1});
        }
    }

    const MscclppPlan& plan_;
    const RunResult& execution_;
    const OperationMessages messages_;
    std::vector<At>& places_;
    msccl::AlgoGpu made_;
    At at_;
    std::vector<std::vector<std::size_t>> first_step_;  // by block and operation, with the end
};

}  // namespace

Algo two_sided(const MscclppPlan& plan, const RunResult& execution) {
    std::vector<At> places;
    Translation translation(plan, execution, places);
    Algo algo{.name = plan.name,
              .protocol = plan.protocol,
              .kind = plan.kind,
              .chunks = plan.chunks,
              .in_place = plan.in_place,
              .sizes = plan.sizes,
              .gpus = {},
              .most_slots = kMostSlots,  // writes into memory need no queue
              .origin = -1,
              .place = {}};
    for (Rank rank = 0; std::cmp_less(rank, plan.gpus.size()); ++rank)
        algo.gpus.push_back(translation.gpu(rank));
    algo.place = [&plan, places = std::move(places)](msccl::FileOffset origin) {
        return origin < 0 ? plan.file : plan.place_of(places[static_cast<std::size_t>(origin)]);
    };
    return algo;
}

}  // namespace pccl::capsule::mscclpp
