// SPDX-License-Identifier: Apache-2.0

// Messages between two ranks. The calls never block, only their works do. Messages of CUDA tensors
// have no tags: they match in the order in which both ranks issue them.

#include <utility>

#include "csrc/torch/arguments.h"
#include "csrc/torch/backend.h"
#include "csrc/torch/errors.h"

namespace pccl::backend {

using c10d::OpType;

namespace {

// A message is sent as bytes; both sides must agree on the element type.
std::span<std::byte> bytes_of(const at::Tensor& tensor, void* data) {
    return {static_cast<std::byte*>(data), tensor.nbytes()};
}

const at::Tensor& message(const std::vector<at::Tensor>& tensors) {
    TORCH_CHECK_VALUE(tensors.size() == 1, "a message is one tensor, got ", tensors.size());
    check_tensor(tensors.front());
    return tensors.front();
}

}  // namespace

PcclBackend::WorkPtr PcclBackend::send(Tensors& tensors, int destination, int tag) {
    if (goes_by_kernels(message(tensors)))
        return issue_message({true, destination, tensors.front()});
    TensorStaging staging(place_of(tensors.front()));
    const at::Tensor memory = staging.readable(message(tensors));
    throw_unless_ok("pccl:send", staging.why_refused());
    staging.load();
    Request request{.type = OpType::SEND,
                    .title = "pccl:send",
                    .inputs = tensors,
                    .outputs = tensors,
                    .peer = destination,
                    .sequence = sequence_.load()};
    return recorded(request, [&] {
        const auto work = make_work(request);
        const auto bytes = bytes_of(memory, const_cast<void*>(memory.const_data_ptr()));
        return start(work, communicator_->send(destination, tag, bytes), std::move(staging));
    });
}

PcclBackend::WorkPtr PcclBackend::recv(Tensors& tensors, int source, int tag) {
    if (goes_by_kernels(message(tensors))) return issue_message({false, source, tensors.front()});
    return receive({OpType::RECV, "pccl:recv", tensors, tensors}, source, tag);
}

PcclBackend::WorkPtr PcclBackend::recvAnysource(Tensors& tensors, int tag) {
    TORCH_CHECK_NOT_IMPLEMENTED(!goes_by_kernels(message(tensors)),
                                "PCCL receives CUDA tensors from a rank that is named");
    return receive({OpType::RECVANYSOURCE, "pccl:recvAnySource", tensors, tensors}, kAnySource,
                   tag);
}

PcclBackend::WorkPtr PcclBackend::receive(Request request, Rank source_or_any, int tag) {
    const at::Tensor& tensor = message(request.inputs);
    TensorStaging staging(place_of(tensor));
    const at::Tensor memory = staging.writable(tensor);
    throw_unless_ok(request.title, staging.why_refused());
    request.peer = source_or_any;
    request.sequence = sequence_.load();
    return recorded(request, [&] {
        const auto work = make_work(request);
        const auto bytes = bytes_of(memory, memory.mutable_data_ptr());
        return start(work, communicator_->receive(source_or_any, tag, bytes), std::move(staging));
    });
}

bool PcclBackend::goes_by_kernels(const at::Tensor& tensor) {
    return tensor.is_cuda() && place_of(tensor) == TensorStaging::StagingPlace::kDevice;
}

PcclBackend::WorkPtr PcclBackend::issue_message(GpuMessage message) {
    {
        const std::lock_guard lock(mutex_);
        if (window_) {
            window_->messages.push_back(std::move(message));
            return nullptr;  // endCoalescing() returns the work of all
        }
    }
    return exchange({&message, 1});
}

PcclBackend::WorkPtr PcclBackend::exchange(std::span<const GpuMessage> messages) {
    Tensors tensors;
    for (const GpuMessage& message : messages) {
        const at::Tensor& tensor = message.tensor;
        check_one_device(messages.front().tensor.device(), tensor.device());
        tensors.push_back(tensor);
    }
    const bool is_one = messages.size() == 1;
    const bool is_sent = messages.front().is_sent;
    const char* const title = is_sent ? "pccl:send" : "pccl:recv";
    const OpType type = is_sent ? OpType::SEND : OpType::RECV;
    Request request{.type = is_one ? type : OpType::COALESCED,
                    .title = is_one ? title : "pccl:coalesced",
                    .inputs = tensors,
                    .outputs = tensors,
                    .sequence = sequence_.load()};
    if (is_one) request.peer = messages.front().peer;
    return recorded(request, [&] { return gpu_.exchange(request, messages); });
}

PcclBackend::WorkPtr PcclBackend::start(const c10::intrusive_ptr<PcclWork>& work,
                                        Result<Event> event, TensorStaging staging) {
    std::vector<Event> events;
    if (event.is_ok()) events.push_back(*event);
    std::vector<PcclWork::StagedMemory> stages;
    stages.push_back({std::move(staging)});
    work->finish_after(std::move(events), std::move(stages), event.status());
    throw_if_refused(work->title(), event.status());
    return issued(work);
}

}  // namespace pccl::backend
