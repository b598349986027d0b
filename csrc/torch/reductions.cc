// SPDX-License-Identifier: Apache-2.0

// Collectives that combine elements, and the barrier.

#include <ATen/ATen.h>

#include <utility>

#include "csrc/torch/arguments.h"
#include "csrc/torch/backend.h"

namespace pccl::backend {

using c10d::OpType;

PcclBackend::WorkPtr PcclBackend::allreduce(Tensors& tensors,
                                            const c10d::AllreduceOptions& options) {
    const at::Tensor& tensor = only(tensors, "tensor");
    if (tensor.is_sparse()) return allreduce_sparse(tensors, options);
    Call call(CollectiveKind::kAllReduce, sample(tensor), reduction_of(options.reduceOp));
    call.update(tensor);
    return perform({OpType::ALLREDUCE, "pccl:all_reduce", tensors, tensors, options.timeout,
                    is_async(options)},
                   std::move(call));
}

PcclBackend::WorkPtr PcclBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
    const TensorReduction reduction = reduction_of(options.reduceOp);
    std::vector<Call> calls;
    calls.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) {
        calls.emplace_back(CollectiveKind::kAllReduce, sample(tensor), reduction).update(tensor);
    }
    return perform_all({OpType::ALLREDUCE_COALESCED, "pccl:all_reduce_coalesced", tensors, tensors,
                        options.timeout, is_async(options)},
                       calls);
}

PcclBackend::WorkPtr PcclBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
    const at::Tensor& tensor = only(tensors, "tensor");
    check_root(options.rootRank, size_);
    const auto root = static_cast<Rank>(options.rootRank);
    Call call(CollectiveKind::kReduce, sample(tensor), reduction_of(options.reduceOp), root);
    if (rank_ == root) {
        call.update(tensor);
    } else {
        call.read(tensor);
    }
    return perform(
        {OpType::REDUCE, "pccl:reduce", tensors, tensors, options.timeout, is_async(options)},
        std::move(call));
}

Call PcclBackend::reduce_scatter_call(const at::Tensor& output, const at::Tensor& input,
                                      const TensorReduction& reduction) {
    TORCH_CHECK_VALUE(input.numel() == output.numel() * size_, "an input of ", input.numel(),
                      " elements for ", size_, " outputs of ", output.numel());
    Call call(CollectiveKind::kReduceScatter, sample(output), reduction);
    call.read_parts(input, equal_parts(input, size_));
    call.write(output);
    return call;
}

PcclBackend::WorkPtr PcclBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                 const c10d::ReduceScatterOptions& options) {
    const at::Tensor& output = only(outputs, "output");
    const Tensors& parts = only(inputs, "list of inputs");
    check_list(parts, "input");
    Call call(CollectiveKind::kReduceScatter, sample(output), reduction_of(options.reduceOp));
    for (const at::Tensor& part : parts) call.read(part);
    call.write(output);
    return perform({OpType::REDUCE_SCATTER, "pccl:reduce_scatter", parts, outputs, options.timeout,
                    is_async(options)},
                   std::move(call));
}

PcclBackend::WorkPtr PcclBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                       const c10d::ReduceScatterOptions& options) {
    const Tensors inputs{input};
    return perform({OpType::_REDUCE_SCATTER_BASE,
                    "pccl:_reduce_scatter_base",
                    inputs,
                    {output},
                    options.timeout,
                    is_async(options)},
                   reduce_scatter_call(output, input, reduction_of(options.reduceOp)));
}

PcclBackend::WorkPtr PcclBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), outputs.size(), " outputs for ",
                      inputs.size(), " inputs");
    const TensorReduction reduction = reduction_of(options.reduceOp);
    std::vector<Call> calls;
    calls.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        calls.push_back(reduce_scatter_call(outputs[i], inputs[i], reduction));
    }
    return perform_all({OpType::COALESCED, "pccl:reduce_scatter_tensor_coalesced", inputs, outputs,
                        options.timeout, is_async(options)},
                       calls);
}

PcclBackend::WorkPtr PcclBackend::barrier(const c10d::BarrierOptions& options) {
    gpu_.synchronize();  // a barrier also waits for earlier work of the GPUs
    const Tensors none;
    const at::Tensor token = at::zeros({1}, at::kByte);
    Call call(CollectiveKind::kAllReduce, sample(token), {ReduceOp::kMax, {}});
    call.update(token);
    call.mark_barrier();
    return perform({OpType::BARRIER, "pccl:barrier", none, {}, options.timeout, is_async(options)},
                   std::move(call));
}

}  // namespace pccl::backend
