// SPDX-License-Identifier: Apache-2.0

// Collectives that move elements.

#include <utility>

#include "csrc/torch/arguments.h"
#include "csrc/torch/backend.h"

namespace pccl::backend {

using c10d::OpType;
namespace {

// Splits count rows of dimension 0; an empty list means equal splits.
Parts parts_of(const at::Tensor& whole, const std::vector<std::int64_t>& splits, int size) {
    c10d::checkSplitSizes(splits, whole, size);
    if (splits.empty()) return equal_parts(whole, size);
    const std::int64_t rows = whole.size(0);
    const std::int64_t row = rows == 0 ? 0 : whole.numel() / rows;
    Parts parts;
    for (const std::int64_t split : splits) {
        TORCH_CHECK_VALUE(split >= 0, "a split of ", split, " rows");
        parts.push_back(static_cast<std::size_t>(split * row));
    }
    return parts;
}

}  // namespace

PcclBackend::WorkPtr PcclBackend::broadcast(Tensors& tensors,
                                            const c10d::BroadcastOptions& options) {
    const at::Tensor& tensor = only(tensors, "tensor");
    check_root(options.rootRank, size_);
    Call call(CollectiveKind::kBroadcast, sample(tensor), static_cast<Rank>(options.rootRank));
    if (rank_ == options.rootRank) {
        call.add_root_block(tensor);
    } else {
        call.write(tensor);
    }
    return perform(
        {OpType::BROADCAST, "pccl:broadcast", tensors, tensors, options.timeout, is_async(options)},
        std::move(call));
}

Call PcclBackend::all_gather_call(const Tensors& outputs, const at::Tensor& input) {
    check_list(outputs, "output");
    const at::Tensor& mine = outputs[static_cast<std::size_t>(rank_)];
    TORCH_CHECK_VALUE(mine.numel() == input.numel(), "output ", rank_, " has ", mine.numel(),
                      " elements for an input of ", input.numel());
    Call call(CollectiveKind::kAllGather, sample(input));
    call.read(input);
    call.write_all(outputs);
    return call;
}

Call PcclBackend::all_gather_call(const at::Tensor& output, const at::Tensor& input) {
    TORCH_CHECK_VALUE(output.numel() == input.numel() * size_, "an output of ", output.numel(),
                      " elements for ", size_, " inputs of ", input.numel());
    Call call(CollectiveKind::kAllGather, sample(input));
    call.read(input);
    call.write_parts(output, equal_parts(output, size_));
    return call;
}

PcclBackend::WorkPtr PcclBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) {
    const Tensors& list = only(outputs, "list of outputs");
    return perform(
        {OpType::ALLGATHER, "pccl:all_gather", inputs, list, options.timeout, is_async(options)},
        all_gather_call(list, only(inputs, "input")));
}

PcclBackend::WorkPtr PcclBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                  const c10d::AllgatherOptions& options) {
    const Tensors inputs{input};
    return perform({OpType::_ALLGATHER_BASE,
                    "pccl:_all_gather_base",
                    inputs,
                    {output},
                    options.timeout,
                    is_async(options)},
                   all_gather_call(output, input));
}

PcclBackend::WorkPtr PcclBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& options) {
    TORCH_CHECK_VALUE(outputs.size() == static_cast<std::size_t>(size_),
                      "all_gather_coalesced needs a list of outputs for each of ", size_, " ranks");
    std::vector<Call> calls;
    Tensors all;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Tensors row;
        for (const Tensors& of_rank : outputs) {
            TORCH_CHECK_VALUE(of_rank.size() == inputs.size(), "expected ", inputs.size(),
                              " outputs for each rank, got ", of_rank.size());
            row.push_back(of_rank[i]);
        }
        calls.push_back(all_gather_call(row, inputs[i]));
        all.insert(all.end(), row.begin(), row.end());
    }
    return perform_all({OpType::ALLGATHER_COALESCED, "pccl:all_gather_coalesced", inputs,
                        std::move(all), options.timeout, is_async(options)},
                       calls);
}

PcclBackend::WorkPtr PcclBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), outputs.size(), " outputs for ",
                      inputs.size(), " inputs");
    std::vector<Call> calls;
    calls.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        calls.push_back(all_gather_call(outputs[i], inputs[i]));
    }
    return perform_all({OpType::COALESCED, "pccl:all_gather_into_tensor_coalesced", inputs, outputs,
                        options.timeout, is_async(options)},
                       calls);
}

PcclBackend::WorkPtr PcclBackend::gather(TensorLists& outputs, Tensors& inputs,
                                         const c10d::GatherOptions& options) {
    const at::Tensor& input = only(inputs, "input");
    check_root(options.rootRank, size_);
    Call call(CollectiveKind::kGather, sample(input), static_cast<Rank>(options.rootRank));
    call.read(input);
    Tensors results;
    if (rank_ == options.rootRank) {
        results = only(outputs, "list of outputs on the root");
        check_list(results, "output");
        call.write_all(results);
    } else {
        TORCH_CHECK_VALUE(outputs.empty(), "only the root of a gather has outputs");
    }
    return perform({OpType::GATHER, "pccl:gather", inputs, std::move(results), options.timeout,
                    is_async(options)},
                   std::move(call));
}

PcclBackend::WorkPtr PcclBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                          const c10d::ScatterOptions& options) {
    const at::Tensor& output = only(outputs, "output");
    check_root(options.rootRank, size_);
    Call call(CollectiveKind::kScatter, sample(output), static_cast<Rank>(options.rootRank));
    Tensors parts;
    if (rank_ == options.rootRank) {
        parts = only(inputs, "list of inputs on the root");
        check_list(parts, "input");
        for (const at::Tensor& part : parts) call.read(part);
    } else {
        TORCH_CHECK_VALUE(inputs.empty(), "only the root of a scatter has inputs");
    }
    call.write(output);
    return perform(
        {OpType::SCATTER, "pccl:scatter", parts, outputs, options.timeout, is_async(options)},
        std::move(call));
}

PcclBackend::WorkPtr PcclBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                std::vector<std::int64_t>& output_splits,
                                                std::vector<std::int64_t>& input_splits,
                                                const c10d::AllToAllOptions& options) {
    Call call(CollectiveKind::kAllToAll, sample(input));
    call.read_parts(input, parts_of(input, input_splits, size_));
    call.write_parts(output, parts_of(output, output_splits, size_));
    if (!input_splits.empty() || !output_splits.empty()) call.mark_uneven();
    const Tensors inputs{input};
    return perform({OpType::ALLTOALL_BASE,
                    "pccl:all_to_all",
                    inputs,
                    {output},
                    options.timeout,
                    is_async(options)},
                   std::move(call));
}

PcclBackend::WorkPtr PcclBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                           const c10d::AllToAllOptions& options) {
    check_list(outputs, "output");
    check_list(inputs, "input");
    Call call(CollectiveKind::kAllToAll, sample(inputs.front()));
    for (const at::Tensor& input : inputs) call.read(input);
    call.write_all(outputs);
    call.mark_uneven();
    return perform(
        {OpType::ALLTOALL, "pccl:all_to_all", inputs, outputs, options.timeout, is_async(options)},
        std::move(call));
}

void PcclBackend::check_list(const Tensors& tensors, const char* what) const {
    TORCH_CHECK_VALUE(tensors.size() == static_cast<std::size_t>(size_), "expected one ", what,
                      " for each of ", size_, " ranks, got ", tensors.size());
}

}  // namespace pccl::backend
