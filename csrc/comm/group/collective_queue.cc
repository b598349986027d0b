// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/group/collective_queue.h"

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <span>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/collective/fingerprint.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kAlign = kCacheLine;

std::size_t padded(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

bool overlap(const Block& a, const Block& b, std::size_t element_bytes) {
    const auto begin_a = reinterpret_cast<std::uintptr_t>(a.data);
    const auto begin_b = reinterpret_cast<std::uintptr_t>(b.data);
    return begin_a < begin_b + b.count * element_bytes &&
           begin_b < begin_a + a.count * element_bytes;
}

/// Returns the bytes from the first byte of all blocks to the last.
Block hull_of(std::span<const Block> blocks, std::size_t element_bytes) {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
    for (const Block& block : blocks) {
        if (block.count == 0) continue;
        std::byte* const past = block.data + block.count * element_bytes;
        begin = begin == nullptr ? block.data : std::min(begin, block.data);
        end = std::max(end, past);
    }
    return {begin, static_cast<std::size_t>(end - begin)};
}

/// Returns whether an input overlaps an output in another way than a schedule's in-place form.
bool overlaps_badly(const Collective& collective) {
    const std::size_t element = size_of(collective.type);
    const Block in = hull_of(collective.inputs, element);
    const Block out = hull_of(collective.outputs, element);
    if (!overlap(in, out, 1)) return false;
    if (collective.kind == CollectiveKind::kAllToAll) return true;
    for (const Block& input : collective.inputs) {
        for (const Block& output : collective.outputs) {
            if (input != output && overlap(input, output, element)) return true;
        }
    }
    return false;
}

std::size_t total(const std::vector<Block>& blocks, std::size_t element_bytes) {
    std::size_t bytes = 0;
    for (const Block& block : blocks) bytes += padded(block.count * element_bytes);
    return bytes;
}

}  // namespace

void CollectiveOperation::prepare(const Collective& collective, Decision decision) {
    decision_ = std::move(decision);
    inputs_.assign(collective.inputs.begin(), collective.inputs.end());
    outputs_.assign(collective.outputs.begin(), collective.outputs.end());
    executed_ = collective;
    executed_.inputs = inputs_;
    executed_.outputs = outputs_;
    executed_.algorithm = {};
    accumulator_ = {};
    if (!is_on_shm() && reduces(collective.kind))
        accumulator_ = {collective.type, collective.op, decision_.program->shape.ranks};
}

std::string CollectiveOperation::describe() const { return pccl::describe(header()); }

bool CollectiveOperation::is_flushed() const {
    return started_ &&
           (is_on_shm() ? executors_.over_shm->is_flushed() : executors_.over_links.is_flushed());
}

AwaitedRanks CollectiveOperation::awaited() const {
    if (!started_) return {};
    return is_on_shm() ? executors_.over_shm->awaited() : executors_.over_links.awaited();
}

void CollectiveOperation::start() {
    started_ = true;
    mark_started();
    if (is_on_shm())
        start_on_shm();
    else
        start_on_links();
}

void CollectiveOperation::start_on_shm() {
    if (overlaps_badly(executed_)) copy_inputs_aside();
    executors_.over_shm->start(decision_.on_shm, header(), executed_);
}

void CollectiveOperation::start_on_links() {
    if (is_widened())
        widen_aside();
    else if (overlaps_badly(executed_))
        copy_inputs_aside();
    else if (would_write_root())
        put_output_aside();
    executors_.over_links.start(decision_.program, decision_.cut, header(), executed_,
                                accumulator_);
}

void CollectiveOperation::widen_aside() {
    const std::size_t element = accumulator_.element_bytes();
    narrowed_ = outputs_;
    aside_.resize(total(inputs_, element) + total(outputs_, element));
    std::byte* room = aside_.data();
    for (Block& input : inputs_) {
        accumulator_.widen(room, input.data, input.count);
        input.data = room;
        room += padded(input.count * element);
    }
    for (Block& output : outputs_) {
        output.data = room;
        room += padded(output.count * element);
    }
}

void CollectiveOperation::copy_inputs_aside() {
    const std::size_t element = size_of(executed_.type);
    aside_.resize(total(inputs_, element));
    std::byte* room = aside_.data();
    for (Block& input : inputs_) {
        arithmetic::copy_bytes(room, input.data, input.count * element);
        input.data = room;
        room += padded(input.count * element);
    }
}

bool CollectiveOperation::would_write_root() const {
    const LinkProgram& program = *decision_.program;
    return executed_.kind == CollectiveKind::kBroadcast && program.rank == executed_.root &&
           program.overwrites_output && inputs_.front().data == outputs_.front().data;
}

void CollectiveOperation::put_output_aside() {
    aside_.resize(outputs_.front().count * size_of(executed_.type));
    outputs_.front().data = aside_.data();
}

Result<bool> CollectiveOperation::progress(bool& moved) {
    if (!started_) start();
    if (is_on_shm()) return executors_.over_shm->progress(moved);
    PCCL_ASSIGN_OR_RETURN(const bool done, executors_.over_links.progress(moved));
    if (done) finish_results();
    return done;
}

void CollectiveOperation::finish_results() {
    if (!reduces(executed_.kind)) return;
    const ReduceOp op = executed_.op;
    // Min and Max return one fixed NaN for any NaN operands.
    const bool is_extreme = op == ReduceOp::kMin || op == ReduceOp::kMax;
    const bool unifies = decision_.program->swaps_operands && !is_extreme;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
        const Block& result = outputs_[i];
        if (unifies) accumulator_.unify_nans(result.data, result.count);
        const Block& to = is_widened() ? narrowed_[i] : result;
        accumulator_.finish(to.data, result.data, result.count);
    }
}

runtime::GroupUsage::Call CollectiveOperation::usage() const {
    const auto elements = [](const std::vector<Block>& blocks) {
        std::size_t sum = 0;
        for (const Block& block : blocks) sum += block.count;
        return sum;
    };
    return {.path = is_on_shm() ? runtime::UsedPath::kSharedMemory : runtime::UsedPath::kLinks,
            .bytes = std::max(elements(inputs_), elements(outputs_)) * size_of(executed_.type),
            .begun = issued(),
            .ended = ended(),
            .predicted = decision_.predicted};
}

std::shared_ptr<CollectiveOperation> CollectiveQueue::take_spare() {
    // A spare that an event still refers to must keep its result.
    if (spare_ && spare_.use_count() == 1) return std::exchange(spare_, nullptr);
    return std::make_shared<CollectiveOperation>(executors_, flight_group_);
}

std::shared_ptr<CollectiveOperation> CollectiveQueue::prepare(const Collective& collective,
                                                              const Decision& decision) {
    Decision numbered = decision;
    numbered.header.sequence = static_cast<std::uint32_t>(sequence_.fetch_add(1) + 1);
    numbered.header.generation = generation_;
    numbered.header.history = history_after(latest_);
    latest_ = numbered.header;
    auto operation = take_spare();
    operation->prepare(collective, std::move(numbered));
    return operation;
}

void CollectiveQueue::end_unqueued(std::shared_ptr<CollectiveOperation> operation) {
    operation->finish_unseen();
    usage_.add_call(operation->usage());
    give_back(std::move(operation));
}

void CollectiveQueue::push(std::shared_ptr<CollectiveOperation> operation) {
    const Deadline deadline = operation->deadline();
    for (Queued& ahead : std::views::reverse(collectives_)) {
        if (ahead.deadline.remaining() <= deadline.remaining()) break;
        ahead.deadline = deadline;
    }
    collectives_.push_back({std::move(operation), deadline});
}

bool CollectiveQueue::is_past_deadline() const { return !is_empty() && deadline().passed(); }

AwaitedRanks CollectiveQueue::awaited() const {
    return is_empty() ? AwaitedRanks{} : front().awaited();
}

Status CollectiveQueue::progress(bool& moved, runtime::EndedOperations& ended) {
    while (!is_empty()) {
        bool head_moved = false;
        PCCL_ASSIGN_OR_RETURN(const bool done,
                              collectives_.front().operation->progress(head_moved));
        moved |= head_moved;
        if (!done) return Status::ok();
        moved = true;
        end_front(Status::ok(), ended);
    }
    return Status::ok();
}

void CollectiveQueue::fail_all(const Status& reason, runtime::EndedOperations& ended) {
    while (!is_empty()) end_front(reason, ended);
}

void CollectiveQueue::end_front(const Status& status, runtime::EndedOperations& ended) {
    auto operation = std::move(collectives_.front().operation);
    collectives_.pop_front();
    operation->finish(status);
    if (status.is_ok()) usage_.add_call(operation->usage());
    // A synchronous operation has one other reference, that of the caller of Group::run(), which
    // polls it.
    if (operation->has_callbacks()) ended.add(std::move(operation));
}

}  // namespace pccl::comm
