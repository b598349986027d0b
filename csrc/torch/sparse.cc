// SPDX-License-Identifier: Apache-2.0

// all_reduce of sparse COO tensors: every rank gathers all indices and values, and sums them.
//
// The number of entries differs between ranks, and each rank has only its own. The operation
// therefore takes three collectives, of which the later ones depend on the first. It runs on the
// caller's thread, even if it is asynchronous: the returned work is finished.

#include <ATen/ATen.h>

#include <utility>

#include "csrc/torch/backend.h"
#include "csrc/torch/errors.h"
#include "csrc/torch/timeouts.h"

namespace pccl::backend {

namespace {

struct Entries {
    at::Tensor indices;  // [sparse dimensions, entries]
    at::Tensor values;   // [entries, dense dimensions...]
};

Entries entries_of(const at::Tensor& tensor) {
    const at::Tensor whole = tensor.coalesce();
    return {whole.indices().contiguous(), whole.values().contiguous()};
}

at::Tensor sum_of(const std::vector<Entries>& all, const at::Tensor& like) {
    std::vector<at::Tensor> indices;
    std::vector<at::Tensor> values;
    for (const Entries& entries : all) {
        indices.push_back(entries.indices);
        values.push_back(entries.values);
    }
    return at::sparse_coo_tensor(at::cat(indices, 1), at::cat(values, 0), like.sizes(),
                                 like.options())
        .coalesce();
}

}  // namespace

PcclBackend::WorkPtr PcclBackend::allreduce_sparse(Tensors& tensors,
                                                   const c10d::AllreduceOptions& options) {
    TORCH_CHECK_VALUE(tensors.size() == 1, "PCCL expects one tensor, got ", tensors.size());
    const at::Tensor& tensor = tensors.front();
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.is_cpu(), "CUDA tensors need a PCCL built with CUDA");
    TORCH_CHECK_NOT_IMPLEMENTED(options.reduceOp.op_ == c10d::ReduceOp::SUM,
                                "sparse tensors can only be summed");
    Request request{c10d::OpType::_ALLREDUCE_SPARSE, "pccl:sparse_all_reduce", tensors, tensors};
    request.sequence = ++sequence_;
    const auto work = make_work(request);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;

    const Entries mine = entries_of(tensor);
    const auto gather = [&](const at::Tensor& input, const Tensors& outputs) {
        const Status status = communicator_->run(all_gather_call(outputs, input).collective(),
                                                 timeout_of(options.timeout, work->title()));
        if (status.is_ok()) return;
        work->finish_now(status);
        throw_status(work->title(), status);
    };

    Tensors counts(static_cast<std::size_t>(size_));
    for (at::Tensor& count : counts) count = at::zeros({1}, at::kLong);
    gather(at::full({1}, mine.values.size(0), at::kLong), counts);

    Tensors indices;
    Tensors values;
    std::vector<Entries> all;
    for (const at::Tensor& count : counts) {
        auto shape = mine.values.sizes().vec();
        shape.front() = count.item<std::int64_t>();
        indices.push_back(at::empty({mine.indices.size(0), shape.front()}, mine.indices.options()));
        values.push_back(at::empty(shape, mine.values.options()));
        all.push_back({indices.back(), values.back()});
    }
    gather(mine.indices, indices);
    gather(mine.values, values);
    tensor.copy_(sum_of(all, tensor));
    work->finish_now(Status::ok());
    return work;
}

}  // namespace pccl::backend
