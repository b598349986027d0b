// The GPU side of a backend: launches collectives of CUDA tensors in the order of streams.
//
// A synchronous collective is launched in the caller's current stream. An asynchronous one goes
// into a stream of the backend, behind what the caller's stream has got so far; its work makes
// other streams wait for it. The group of GPUs comes about with the first collective, on all ranks.
#pragma once

#include <c10/core/Stream.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "csrc/comm/device/device_group.h"
#include "csrc/torch/call.h"
#include "csrc/torch/gpu_work.h"

namespace pccl::backend {

class GpuLane {
   public:
    struct Options {
        std::shared_ptr<comm::Store> store;  // of this lane alone; a shrunk group has none
        Rank rank = 0;
        int size = 1;
        std::chrono::milliseconds timeout{};
    };
    explicit GpuLane(Options options) : options_(std::move(options)) {}

    /// All calls in one work. Throws what the launch of one says.
    c10::intrusive_ptr<c10d::Work> launch(const GpuRequest& request, std::span<Call> calls);
    void abort();
    /// Waits for what was launched, and releases the group. Later launches make another.
    void close();

   private:
    std::shared_ptr<comm::DeviceGroup> group_on(const at::Device& device, const char* title);
    void run(comm::DeviceGroup& group, Call& call, const GpuRequest& request);
    c10::Stream own_stream(const at::Device& device);

    const Options options_;
    std::mutex mutex_;  // one launch at a time; guards what follows, but for reads of group_
    std::atomic<std::shared_ptr<comm::DeviceGroup>> group_;
    std::optional<at::Device> device_;
    std::optional<c10::Stream> stream_;
};

}  // namespace pccl::backend
