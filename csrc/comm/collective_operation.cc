#include "csrc/comm/collective_operation.h"

#include <algorithm>
#include <cstdint>

#include "csrc/collective/fingerprint.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kAlign = kCacheLine;

std::size_t padded(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

struct Range {
    std::uintptr_t begin = UINTPTR_MAX;
    std::uintptr_t end = 0;
};

Range range_of(const std::vector<Block>& blocks, std::size_t element_bytes) {
    Range range;
    for (const Block& block : blocks) {
        if (block.count == 0) continue;
        const auto begin = reinterpret_cast<std::uintptr_t>(block.data);
        range.begin = std::min(range.begin, begin);
        range.end = std::max(range.end, begin + block.count * element_bytes);
    }
    return range;
}

bool overlap(const Block& a, const Block& b, std::size_t element_bytes) {
    const auto begin_a = reinterpret_cast<std::uintptr_t>(a.data);
    const auto begin_b = reinterpret_cast<std::uintptr_t>(b.data);
    return begin_a < begin_b + b.count * element_bytes &&
           begin_b < begin_a + a.count * element_bytes;
}

/// Whether an input lies on an output other than exactly where a schedule's in-place form has it.
bool overlaps_badly(schedule::CollectiveKind kind, const Operands& operands) {
    const Range in = range_of(operands.inputs, operands.element_bytes);
    const Range out = range_of(operands.outputs, operands.element_bytes);
    if (in.begin >= out.end || out.begin >= in.end) return false;
    if (kind == schedule::CollectiveKind::kAllToAll) return true;
    for (const Block& input : operands.inputs) {
        for (const Block& output : operands.outputs) {
            const bool same = input.data == output.data && input.count == output.count;
            if (!same && overlap(input, output, operands.element_bytes)) return true;
        }
    }
    return false;
}

/// Points `blocks` at memory in `aside` from `offset` on, and returns where it ends.
std::size_t place(std::vector<Block>& blocks, std::byte* aside, std::size_t offset,
                  std::size_t element_bytes) {
    for (Block& block : blocks) {
        block.data = aside + offset;
        offset += padded(block.count * element_bytes);
    }
    return offset;
}

std::size_t total(const std::vector<Block>& blocks, std::size_t element_bytes) {
    std::size_t bytes = 0;
    for (const Block& block : blocks) bytes += padded(block.count * element_bytes);
    return bytes;
}

}  // namespace

void CollectiveOperation::prepare(const Collective& collective, Decision decision, Board* board,
                                  Timeline* timeline) {
    type_ = collective.type;
    op_ = collective.op;
    decision_ = std::move(decision);
    board_ = board;
    over_links_.record_in(timeline);
    widened_ = !decision_.is_on_board() &&
               runs_widened(collective.kind, type_, op_, decision_.program->shape.ranks);
    inputs_.assign(collective.inputs.begin(), collective.inputs.end());
    outputs_.assign(collective.outputs.begin(), collective.outputs.end());
}

std::string CollectiveOperation::describe() const { return pccl::describe(header()); }

bool CollectiveOperation::is_flushed() const {
    return started_ &&
           (decision_.is_on_board() ? over_board_.is_flushed() : over_links_.is_flushed());
}

AwaitedRanks CollectiveOperation::awaited() const {
    if (!started_) return {};
    return decision_.is_on_board() ? over_board_.awaited() : over_links_.awaited();
}

void CollectiveOperation::start() {
    started_ = true;
    mark_started();
    operands_.inputs = inputs_;
    operands_.outputs = outputs_;
    if (decision_.is_on_board())
        start_on_board();
    else
        start_on_links();
}

void CollectiveOperation::start_on_board() {
    operands_.element_bytes = size_of(type_);
    if (overlaps_badly(kind(), operands_)) copy_inputs_aside();
    over_board_.start(*board_, decision_.on_board, header(), operands_);
}

void CollectiveOperation::start_on_links() {
    const DataType executed = widened_ ? DataType::kFloat32 : type_;
    operands_.element_bytes = size_of(executed);
    operands_.combine = reduces(kind()) ? arithmetic::combine_for(executed, op_).value() : nullptr;
    if (widened_) {
        const std::size_t element = operands_.element_bytes;
        aside_.resize(total(inputs_, element) + total(outputs_, element));
        place(operands_.outputs, aside_.data(), place(operands_.inputs, aside_.data(), 0, element),
              element);
        for (std::size_t i = 0; i < inputs_.size(); ++i)
            arithmetic::widen(type_, reinterpret_cast<float*>(operands_.inputs[i].data),
                              inputs_[i].data, inputs_[i].count);
    } else if (overlaps_badly(kind(), operands_)) {
        copy_inputs_aside();
    }
    over_links_.start(decision_.program, decision_.cut, header(), operands_);
}

void CollectiveOperation::copy_inputs_aside() {
    const std::size_t element = operands_.element_bytes;
    aside_.resize(total(inputs_, element));
    place(operands_.inputs, aside_.data(), 0, element);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
        arithmetic::copy_bytes(operands_.inputs[i].data, inputs_[i].data,
                               inputs_[i].count * element);
}

Result<bool> CollectiveOperation::advance(LinkTable& links, bool& moved) {
    if (!started_) start();
    if (decision_.is_on_board()) return over_board_.advance(moved);
    PCCL_ASSIGN_OR_RETURN(const bool done, over_links_.advance(links, moved));
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
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
        const Block& result = operands_.outputs[i];
        if (unifies) arithmetic::unify_nans(executed, result.data, result.count);
        if (op_ == ReduceOp::kAvg)
            arithmetic::divide(executed, result.data, result.count, program.shape.ranks);
        if (widened_)
            arithmetic::narrow(type_, outputs_[i].data, reinterpret_cast<const float*>(result.data),
                               result.count);
    }
}

}  // namespace pccl::comm
