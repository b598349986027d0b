#include "csrc/torch/gpu_lane.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "csrc/torch/compat.h"
#include "csrc/torch/errors.h"

namespace pccl::backend {

namespace {

using comm::CollectiveKind;

c10::impl::VirtualGuardImpl streams_of(const at::Device& device) {
    return c10::impl::VirtualGuardImpl(device.type());
}

/// The blocks of one side of a collective as one piece of memory: theirs where they lie one after
/// the other, else a copy. Lives while the current stream is that of the launch.
class Flat {
   public:
    Flat(std::span<const comm::Block> blocks, DataType type, const at::Device& device)
        : blocks_(blocks), bytes_(blocks.front().count * size_of(type)), device_(device) {
        const bool is_even = std::ranges::all_of(
            blocks, [&](const comm::Block& block) { return block.count == blocks[0].count; });
        TORCH_CHECK_NOT_IMPLEMENTED(
            is_even, "PCCL does not yet run collectives of blocks of several lengths on GPUs");
        bool is_flat = true;
        for (std::size_t i = 0; i < blocks.size(); ++i)
            is_flat = is_flat && blocks[i].data == blocks[0].data + i * bytes_;
        if (!is_flat) copy_ = memory(blocks.size() * bytes_);
    }

    [[nodiscard]] std::byte* data() const {
        return copy_.defined() ? static_cast<std::byte*>(copy_.data_ptr()) : blocks_[0].data;
    }
    void collect() const {
        for (std::size_t i = 0; copy_.defined() && i < blocks_.size(); ++i)
            part(i).copy_(tensor_at(blocks_[i].data));
    }
    void distribute() const {
        for (std::size_t i = 0; copy_.defined() && i < blocks_.size(); ++i)
            tensor_at(blocks_[i].data).copy_(part(i));
    }
    [[nodiscard]] at::Tensor memory(std::size_t bytes) const {
        return at::empty({static_cast<std::int64_t>(bytes)},
                         at::TensorOptions(at::kByte).device(device_));
    }

   private:
    [[nodiscard]] at::Tensor part(std::size_t index) const {
        return copy_.narrow(0, static_cast<std::int64_t>(index * bytes_),
                            static_cast<std::int64_t>(bytes_));
    }
    [[nodiscard]] at::Tensor tensor_at(std::byte* data) const {
        return at::from_blob(data, {static_cast<std::int64_t>(bytes_)},
                             at::TensorOptions(at::kByte).device(device_));
    }

    std::span<const comm::Block> blocks_;
    std::size_t bytes_;
    at::Device device_;
    at::Tensor copy_;
};

bool has_kernel(CollectiveKind kind) {
    return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter ||
           kind == CollectiveKind::kAllGather || kind == CollectiveKind::kAllToAll ||
           kind == CollectiveKind::kBroadcast;
}

}  // namespace

c10::intrusive_ptr<c10d::Work> GpuLane::launch(const GpuRequest& request, std::span<Call> calls) {
    const std::lock_guard lock(mutex_);
    const at::Device device = calls.front().device();
    const c10::OptionalDeviceGuard on_device(device);
    const auto group = group_on(device, request.title);
    const c10::Stream callers = streams_of(device).getStream(device);
    const c10::Stream stream = request.async ? own_stream(device) : callers;
    if (request.async) {
        c10::Event issued(device.type());
        issued.record(callers);
        issued.block(stream);
    }
    const c10::StreamGuard on_stream(stream);
    auto work = c10::make_intrusive<GpuWork>(options_.rank, request, group);
    for (Call& call : calls) {
        run(*group, call, request);
        call.staging().finish();
        if (!request.async) continue;
        call.staging().for_each([&](const at::Tensor& tensor) {
            streams_of(device).recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
        });
    }
    work->launched(stream);
    return work;
}

void GpuLane::run(comm::DeviceGroup& group, Call& call, const GpuRequest& request) {
    const comm::Collective collective = call.collective();
    TORCH_CHECK_NOT_IMPLEMENTED(has_kernel(collective.kind), request.title,
                                ": PCCL has no kernel for CUDA tensors yet");
    // Only the root of a broadcast has an input; the kernel does not read that of the others.
    const bool has_input = !collective.inputs.empty();
    const auto& inputs = has_input ? collective.inputs : collective.outputs;
    const Flat input(inputs, collective.type, call.device());
    const Flat output(collective.outputs, collective.type, call.device());
    if (has_input) input.collect();
    const c10::Stream stream = streams_of(call.device()).getStream(call.device());
    const Status status = group.launch({.kind = collective.kind,
                                        .type = collective.type,
                                        .op = collective.op,
                                        .root = collective.root,
                                        .input = input.data(),
                                        .output = output.data(),
                                        .count = inputs.front().count,
                                        .plan = {}},
                                       native_handle(streams_of(call.device()), stream));
    throw_unless_ok(request.title, status);
    output.distribute();
}

std::shared_ptr<comm::DeviceGroup> GpuLane::group_on(const at::Device& device, const char* title) {
    if (const auto group = group_.load()) {
        TORCH_CHECK_VALUE(*device_ == device, title, ": this rank's group is on ", *device_,
                          ", the tensors are on ", device);
        return group;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(
        options_.store, title,
        ": a group that was shrunk serves CPU tensors alone; make a new group");
    auto made = comm::DeviceGroup::create({.rank = options_.rank,
                                           .size = options_.size,
                                           .store = options_.store,
                                           .device = device.index(),
                                           .timeout = options_.timeout,
                                           .driver = nullptr});
    throw_unless_ok(title, made.status());
    device_ = device;
    group_ = std::move(*made);
    return group_.load();
}

c10::Stream GpuLane::own_stream(const at::Device& device) {
    if (!stream_) stream_ = streams_of(device).getStreamFromGlobalPool(device, true);
    return *stream_;
}

void GpuLane::abort() {
    // Not under the lock: a launch may hold it while it waits for peers.
    if (const auto group = group_.load()) group->abort();
}

void GpuLane::close() {
    const std::lock_guard lock(mutex_);
    if (group_.load() == nullptr) return;
    try {
        streams_of(*device_).synchronizeDevice(device_->index());
    } catch (const c10::Error& error) {
        // A device that failed has nothing left to wait for.
        TORCH_WARN("PCCL closes a group of GPUs: ", error.what_without_backtrace());
    }
    group_.store(nullptr);
    stream_.reset();
}

}  // namespace pccl::backend
