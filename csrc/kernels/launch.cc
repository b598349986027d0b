#include "csrc/kernels/launch.h"

#include "csrc/base/text.h"

namespace pccl::kernels {
namespace {

bool is_complex(DataType type) {
    return type == DataType::kComplex64 || type == DataType::kComplex128;
}
bool is_real(DataType type) {
    return is_half(type) || type == DataType::kFloat32 || type == DataType::kFloat64;
}
bool is_bitwise(ReduceOp op) {
    return op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
}
bool is_sum(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kAvg; }

struct Bounds {
    int blocks;
    int threads;
};
Bounds bounds_of(Protocol protocol) {
    switch (protocol) {
        case Protocol::kWords:
            return {abi::kMostLinedBlocks, abi::kLinesPerBlock};
        case Protocol::kStaged:
            return {2 * abi::kMostStagedPairs, kMostThreads};
        case Protocol::kTurns:
        case Protocol::kDirect:
            break;
    }
    return {abi::kMostBlocks, kMostThreads};
}

}  // namespace

Status check_reduction(DataType type, ReduceOp op) {
    const bool is_refused = type == DataType::kBytes || (is_complex(type) && !is_sum(op)) ||
                            (is_real(type) && is_bitwise(op)) ||
                            (type == DataType::kBool && op == ReduceOp::kAvg);
    if (!is_refused) return Status::ok();
    return Status::unsupported(concat("GPUs do not reduce data type ", static_cast<int>(type),
                                      " by operator ", static_cast<int>(op)));
}

Status check_plan(const Plan& plan, std::size_t bytes) {
    const Bounds most = bounds_of(plan.protocol);
    if (plan.blocks < 1 || plan.blocks > most.blocks || plan.threads < 32 ||
        plan.threads > most.threads || plan.threads % 32 != 0)
        return Status::invalid_argument(concat("a plan of ", plan.blocks, " blocks of ",
                                               plan.threads, " threads; up to ", most.blocks,
                                               " of ", most.threads, ", in warps of 32, work"));
    const auto blocks = static_cast<std::size_t>(plan.blocks);
    const std::size_t in_words = blocks * static_cast<std::size_t>(plan.threads) * abi::kLineBytes;
    if (plan.protocol == Protocol::kWords && in_words < bytes)
        return Status::invalid_argument(
            concat("a plan that carries ", in_words, " bytes of ", bytes));
    const bool is_paired = blocks % 2 == 0 && (blocks / 2 - 1) * abi::kStageBytes < bytes;
    if (plan.protocol == Protocol::kStaged && !is_paired)
        return Status::invalid_argument(
            concat("a plan of ", blocks, " blocks does not pair them over ", bytes, " bytes"));
    return Status::ok();
}

}  // namespace pccl::kernels
