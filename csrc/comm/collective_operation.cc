#include "csrc/comm/collective_operation.h"

#include <algorithm>
#include <cstdint>

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

/// From the first byte of all to the last, in bytes.
Block hull_of(const std::vector<Block>& blocks, std::size_t element_bytes) {
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

/// Whether an input lies on an output other than exactly where a schedule's in-place form has it.
bool overlaps_badly(schedule::CollectiveKind kind, const Operands& operands) {
    const Block in = hull_of(operands.inputs, operands.element_bytes);
    const Block out = hull_of(operands.outputs, operands.element_bytes);
    if (!overlap(in, out, 1)) return false;
    if (kind == schedule::CollectiveKind::kAllToAll) return true;
    for (const Block& input : operands.inputs) {
        for (const Block& output : operands.outputs) {
            const bool same = input.data == output.data && input.count == output.count;
            if (!same && overlap(input, output, operands.element_bytes)) return true;
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

void CollectiveOperation::prepare(const Collective& collective, Decision decision,
                                  Executors& executors) {
    type_ = collective.type;
    op_ = collective.op;
    decision_ = std::move(decision);
    executors_ = &executors;
    widened_ =
        !is_on_board() && runs_widened(collective.kind, type_, op_, decision_.program->shape.ranks);
    operands_.inputs.assign(collective.inputs.begin(), collective.inputs.end());
    operands_.outputs.assign(collective.outputs.begin(), collective.outputs.end());
}

std::string CollectiveOperation::describe() const { return pccl::describe(header()); }

bool CollectiveOperation::is_flushed() const {
    return started_ && (is_on_board() ? executors_->over_board->is_flushed()
                                      : executors_->over_links.is_flushed());
}

AwaitedRanks CollectiveOperation::awaited() const {
    if (!started_) return {};
    return is_on_board() ? executors_->over_board->awaited() : executors_->over_links.awaited();
}

void CollectiveOperation::start() {
    started_ = true;
    mark_started();
    if (is_on_board())
        start_on_board();
    else
        start_on_links();
}

void CollectiveOperation::start_on_board() {
    operands_.element_bytes = size_of(type_);
    if (overlaps_badly(kind(), operands_)) copy_inputs_aside();
    executors_->over_board->start(decision_.on_board, header(), operands_);
}

void CollectiveOperation::start_on_links() {
    const DataType executed = widened_ ? DataType::kFloat32 : type_;
    operands_.element_bytes = size_of(executed);
    operands_.combine = reduces(kind()) ? arithmetic::combine_for(executed, op_).value() : nullptr;
    if (widened_)
        widen_aside();
    else if (overlaps_badly(kind(), operands_))
        copy_inputs_aside();
    executors_->over_links.start(decision_.program, decision_.cut, header(), operands_);
}

void CollectiveOperation::widen_aside() {
    const std::size_t element = operands_.element_bytes;
    narrowed_ = operands_.outputs;
    aside_.resize(total(operands_.inputs, element) + total(operands_.outputs, element));
    std::byte* room = aside_.data();
    for (Block& input : operands_.inputs) {
        arithmetic::widen(type_, reinterpret_cast<float*>(room), input.data, input.count);
        input.data = room;
        room += padded(input.count * element);
    }
    for (Block& output : operands_.outputs) {
        output.data = room;
        room += padded(output.count * element);
    }
}

void CollectiveOperation::copy_inputs_aside() {
    const std::size_t element = operands_.element_bytes;
    aside_.resize(total(operands_.inputs, element));
    std::byte* room = aside_.data();
    for (Block& input : operands_.inputs) {
        arithmetic::copy_bytes(room, input.data, input.count * element);
        input.data = room;
        room += padded(input.count * element);
    }
}

Result<bool> CollectiveOperation::advance(bool& moved) {
    if (!started_) start();
    if (is_on_board()) return executors_->over_board->advance(moved);
    PCCL_ASSIGN_OR_RETURN(const bool done, executors_->over_links.advance(moved));
    if (done) finish_results();
    return done;
}

void CollectiveOperation::finish_results() {
    if (!reduces(kind())) return;
    const DataType executed = widened_ ? DataType::kFloat32 : type_;
    // Min and Max give one NaN whatever their operands' are.
    const bool is_extreme = op_ == ReduceOp::kMin || op_ == ReduceOp::kMax;
    const LinkProgram& program = *decision_.program;
    const bool unifies = program.swaps_operands && !is_extreme;
    for (std::size_t i = 0; i < operands_.outputs.size(); ++i) {
        const Block& result = operands_.outputs[i];
        if (unifies) arithmetic::unify_nans(executed, result.data, result.count);
        if (op_ == ReduceOp::kAvg)
            arithmetic::divide(executed, result.data, result.count, program.shape.ranks);
        if (widened_)
            arithmetic::narrow(type_, narrowed_[i].data,
                               reinterpret_cast<const float*>(result.data), result.count);
    }
}

}  // namespace pccl::comm
