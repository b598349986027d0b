// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/launch.h"

#include "csrc/base/text/text.h"

namespace pccl::kernels {
namespace {

bool is_complex(DataType type) {
    return type == DataType::kComplex64 || type == DataType::kComplex128;
}
bool is_real(DataType type) {
    return is_half(type) || type == DataType::kFloat32 || type == DataType::kFloat64 ||
           type == DataType::kFloat8E4m3 || type == DataType::kFloat8E5m2;
}
bool is_bitwise(ReduceOp op) {
    return op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
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

Status check_plan(const LaunchPlan& plan, std::size_t bytes) {
    const bool is_ll = plan.protocol == Protocol::kLL;
    const int most_blocks = is_ll ? abi::kMostLLBlocks : abi::kMostBlocks;
    const int most_threads = is_ll ? abi::kLLLinesPerBlock : kMostThreads;
    if (plan.blocks < 1 || plan.blocks > most_blocks || plan.threads < 32 ||
        plan.threads > most_threads || plan.threads % 32 != 0)
        return Status::invalid_argument(concat("a plan of ", plan.blocks, " blocks of ",
                                               plan.threads, " threads; up to ", most_blocks,
                                               " of ", most_threads, ", in warps of 32, work"));
    const std::size_t in_words = static_cast<std::size_t>(plan.blocks) *
                                 static_cast<std::size_t>(plan.threads) * abi::kLLDataBytes;
    if (is_ll && in_words < bytes)
        return Status::invalid_argument(
            concat("a plan that carries ", in_words, " bytes of ", bytes));
    return Status::ok();
}

}  // namespace pccl::kernels
