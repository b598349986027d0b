// SPDX-License-Identifier: Apache-2.0

// GPU side of a backend: launches collectives and messages of CUDA tensors in stream order.
//
// A synchronous collective is launched in the caller's current stream. An asynchronous one goes
// into a stream of the backend, ordered after the caller's stream; its work makes other streams
// wait for it. Messages are asynchronous, too. Sends and receives have separate streams, so that
// two ranks that both send first do not wait for each other. The first of these operations makes
// the group of GPUs, on all ranks.
#pragma once

#include <c10/core/Stream.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/threads/poller.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/comm/communicator.h"
#include "csrc/device/device_group.h"
#include "csrc/torch/call.h"
#include "csrc/torch/gpu_work.h"
#include "csrc/torch/observer.h"

namespace pccl::backend {

/// Message to or from `peer`.
struct GpuMessage {
    bool is_sent = false;
    Rank peer = 0;
    at::Tensor tensor;
};

class GpuBackend {
   public:
    struct GpuBackendOptions {
        std::shared_ptr<Store> store;  // used by this backend alone
        std::string name{};
        std::vector<std::uint64_t> global_ranks{};
        Rank rank = 0;
        int size = 1;
        std::chrono::milliseconds timeout{};
        std::string algorithms{};  // as in DeviceGroupOptions
        device::Preferences preferences{};
        std::shared_ptr<WorkObserver> observer{};
        std::weak_ptr<const comm::CommunicatorImpl> communicator{};  // of the same ranks
    };
    explicit GpuBackend(GpuBackendOptions options) : options_(std::move(options)) {}

    using WorkPtr = c10::intrusive_ptr<c10d::Work>;
    /// Launches all calls as one work. Throws if a launch fails.
    WorkPtr launch(const Request& request, std::span<Call> calls);
    /// Launches all messages, which are on one device, together as one work.
    WorkPtr exchange(const Request& request, std::span<const GpuMessage> messages);
    /// Makes the group if there is none yet; all ranks must do so. Returns false where no kernels
    /// can meet: there is nothing to launch then.
    [[nodiscard]] bool connect(const at::Device& device);
    /// Lets the peers map the memory of `tensor` before its first use.
    void announce(const at::Tensor& tensor);
    /// Waits until the GPU has done the collectives of this backend, and the work in the current
    /// stream. Throws where the group has failed.
    void synchronize();
    /// Returns ok, or why the group of GPUs has failed.
    [[nodiscard]] Status health() const;
    /// Returns the group of GPUs; null before all ranks have made it, and where no kernels can
    /// meet.
    [[nodiscard]] std::shared_ptr<const device::DeviceGroupImpl> group() const {
        return group_.load();
    }
    /// Returns whether kernels are known to meet nowhere, so that CUDA tensors go as CPU tensors.
    [[nodiscard]] bool goes_through_host() const { return route_.load() == TensorRoute::kHost; }
    /// Sets the catalogue for the choices of later launches, as in the communicator. All ranks must
    /// call it between the same two launches.
    void choose_from(const std::shared_ptr<const schedule::Catalogue>& catalogue);
    /// Calls DeviceGroup::record_timeline(), or applies to the next group where there is none.
    [[nodiscard]] Status record_timeline(std::size_t most);
    [[nodiscard]] Result<schedule::TimedSteps> take_timeline();
    /// Sets the timeout of later launches.
    void set_timeout(std::chrono::milliseconds timeout);
    /// Returns the store for the backend of a group that is split from this one. The name must be
    /// used once only.
    [[nodiscard]] std::shared_ptr<Store> store_for(const std::string& child) const {
        return bootstrap::prefixed(options_.store, child);
    }
    /// Aborts waiting operations, also a group in the making. Nothing is launched until close().
    void abort();
    /// Waits for everything launched, and releases the group. Later launches make another one.
    void close();

   private:
    /// Throws in a child of fork(), which must not even wait for the lock.
    void check_process() const;

    enum class StreamRole { kCollectives, kSends, kReceives };

    /// Calls body(group, stream), where `stream` is current and belongs to the work.
    template <typename Body>
    WorkPtr issue(const Request& request, const at::Device& device, StreamRole channel, Body body);
    /// Reports to the observer when the GPU has done the work of `request`.
    void watch(const Request& request, const std::shared_ptr<GpuTimer>& timer);
    std::shared_ptr<device::DeviceGroupImpl> group_on(const at::Device& device, const char* title);
    /// Returns null where no kernels can meet.
    std::shared_ptr<device::DeviceGroupImpl> make_group(const at::Device& device);
    [[nodiscard]] device::DeviceGroupImplOptions group_options(const at::Device& device);
    c10::Stream own_stream(const at::Device& device, StreamRole channel);

    const ForkMark made_in_;
    const GpuBackendOptions options_;
    std::atomic<std::chrono::milliseconds> timeout_{options_.timeout};
    // Serialises launches; guards the members below, except reads of group_. Signal handlers run
    // under it while a group is made.
    std::recursive_mutex mutex_;
    bool is_connecting_ = false;
    std::atomic<std::shared_ptr<device::DeviceGroupImpl>> group_;
    enum class TensorRoute { kUnknown, kKernels, kHost };
    std::atomic<TensorRoute> route_{TensorRoute::kUnknown};
    std::atomic<bool> is_aborted_{false};
    std::optional<at::Device> device_;
    int rendezvous_count_ = 0;
    std::size_t timed_steps_ = 0;  // length of the timeline of a group, once it is made
    std::array<std::optional<c10::Stream>, 3> streams_;  // by channel
    std::unique_ptr<Poller, LeaveToParent> poller_;      // null until a work is watched
};

}  // namespace pccl::backend
