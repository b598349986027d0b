// Messages between two ranks. They never block: their work does.

#include <utility>

#include "csrc/torch/backend.h"
#include "csrc/torch/errors.h"

namespace pccl::backend {

using c10d::OpType;

namespace {

// A message is bytes; that both sides mean one element type is their agreement.
std::span<std::byte> bytes_of(const at::Tensor& tensor, void* data) {
    return {static_cast<std::byte*>(data), tensor.nbytes()};
}

const at::Tensor& message(const std::vector<at::Tensor>& tensors) {
    TORCH_CHECK_VALUE(tensors.size() == 1, "a message is one tensor, got ", tensors.size());
    check_cpu_tensor(tensors.front());
    return tensors.front();
}

}  // namespace

auto PcclBackend::send(Tensors& tensors, int destination, int tag) -> WorkPtr {
    Staging staging;
    const at::Tensor memory = staging.readable(message(tensors));
    Request request{OpType::SEND, "pccl:send", tensors, tensors};
    const auto work = make_work(request);
    const auto bytes = bytes_of(memory, const_cast<void*>(memory.const_data_ptr()));
    return start(work, communicator_->send(destination, tag, bytes), std::move(staging));
}

auto PcclBackend::recv(Tensors& tensors, int source, int tag) -> WorkPtr {
    return receive({OpType::RECV, "pccl:recv", tensors, tensors}, source, tag);
}

auto PcclBackend::recvAnysource(Tensors& tensors, int tag) -> WorkPtr {
    return receive({OpType::RECVANYSOURCE, "pccl:recvAnySource", tensors, tensors},
                   comm::kAnySource, tag);
}

auto PcclBackend::receive(Request request, Rank source_or_any, int tag) -> WorkPtr {
    Staging staging;
    const at::Tensor memory = staging.writable(message(request.inputs));
    const auto work = make_work(request);
    const auto bytes = bytes_of(memory, memory.mutable_data_ptr());
    return start(work, communicator_->receive(source_or_any, tag, bytes), std::move(staging));
}

auto PcclBackend::start(const c10::intrusive_ptr<PcclWork>& work, Result<comm::Event> event,
                        Staging staging) -> WorkPtr {
    std::vector<comm::Event> events;
    if (event.is_ok()) events.push_back(*event);
    std::vector<Staging> stages;
    stages.push_back(std::move(staging));
    work->finish_after(std::move(events), std::move(stages), event.status());
    throw_if_refused(work->title(), event.status());
    return issued(work);
}

}  // namespace pccl::backend
