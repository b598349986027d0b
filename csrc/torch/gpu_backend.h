// The GPU side of a backend: launches collectives and messages of CUDA tensors in stream order.
//
// A synchronous collective is launched in the caller's current stream. An asynchronous one goes
// into a stream of the backend, behind what the caller's stream has got so far; its work makes
// other streams wait for it. Messages are asynchronous, too; sends and receives have a stream each,
// so that two ranks that both send first do not wait for each other. The group of GPUs comes about
// with the first of all these, on all ranks.
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
#include "csrc/base/poller.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/comm/communicator.h"
#include "csrc/device/device_group.h"
#include "csrc/torch/call.h"
#include "csrc/torch/gpu_work.h"
#include "csrc/torch/observer.h"

namespace pccl::backend {

/// A message to or from `peer`.
struct GpuMessage {
    bool is_sent = false;
    Rank peer = 0;
    at::Tensor tensor;
};

class GpuBackend {
   public:
    struct GpuBackendOptions {
        std::shared_ptr<bootstrap::Store> store;  // of this backend alone
        std::string name{};
        std::vector<std::uint64_t> global_ranks{};
        Rank rank = 0;
        int size = 1;
        std::chrono::milliseconds timeout{};
        std::string algorithms{};  // as DeviceGroupOptions has them
        device::Preferences preferences{};
        std::shared_ptr<Observer> observer{};
        std::weak_ptr<const comm::Communicator> communicator{};  // of the same ranks
    };
    explicit GpuBackend(GpuBackendOptions options) : options_(std::move(options)) {}

    using WorkPtr = c10::intrusive_ptr<c10d::Work>;
    /// All calls in one work. Throws what the launch of one says.
    WorkPtr launch(const Request& request, std::span<Call> calls);
    /// All messages at once, in one work; of one device.
    WorkPtr exchange(const Request& request, std::span<const GpuMessage> messages);
    /// Makes the group, if there is none yet; all ranks do. False where GPUs do not reach each
    /// other: then there is nothing to launch.
    [[nodiscard]] bool connect(const at::Device& device);
    /// Lets the peers map the memory of `tensor` before it is first used.
    void announce(const at::Tensor& tensor);
    /// Waits until the GPU has done the collectives of this backend, and what the current stream
    /// has got. Throws where the group is over.
    void synchronize();
    /// ok, or why the group of GPUs is over.
    [[nodiscard]] Status health() const;
    /// The group of GPUs; null before all ranks have made it, and where GPUs do not reach each
    /// other.
    [[nodiscard]] std::shared_ptr<const device::DeviceGroup> group() const { return group_.load(); }
    /// Whether it is known that GPUs do not reach each other.
    [[nodiscard]] bool goes_through_host() const { return route_.load() == Route::kHost; }
    /// Of later launches, as the communicator chooses; all ranks come here between the same two.
    void choose_from(const std::shared_ptr<const schedule::Catalogue>& catalogue);
    /// As DeviceGroup's; until there is a group, of the next one.
    [[nodiscard]] Status record_timeline(std::size_t most);
    [[nodiscard]] Result<schedule::TimedSteps> take_timeline();
    /// Of later launches.
    void set_timeout(std::chrono::milliseconds timeout);
    /// For the backend of a group that is made of this one, by a name that is used once.
    [[nodiscard]] std::shared_ptr<bootstrap::Store> store_for(const std::string& child) const {
        return bootstrap::prefixed(options_.store, child);
    }
    /// Makes what waits end, a group that is being made, too; until close(), nothing is launched.
    void abort();
    /// Waits for what was launched, and releases the group. Later launches make another.
    void close();

   private:
    /// Throws in a child of fork(), which must not even wait for the lock.
    void check_process() const;

    enum class Channel { kCollectives, kSends, kReceives };

    /// Calls body(group, stream), with `stream` current, which is the work's.
    template <typename Body>
    WorkPtr issue(const Request& request, const at::Device& device, Channel channel, Body body);
    /// Lets the observer know when the GPU has done the work of `request`.
    void watch(const Request& request, const std::shared_ptr<GpuTimer>& timer);
    std::shared_ptr<device::DeviceGroup> group_on(const at::Device& device, const char* title);
    /// Null where GPUs do not reach each other.
    std::shared_ptr<device::DeviceGroup> make_group(const at::Device& device);
    [[nodiscard]] device::DeviceGroupOptions group_options(const at::Device& device);
    c10::Stream own_stream(const at::Device& device, Channel channel);

    const ForkMark made_in_;
    const GpuBackendOptions options_;
    std::atomic<std::chrono::milliseconds> timeout_{options_.timeout};
    // One launch at a time; guards what follows, but for reads of group_. Signal handlers run under
    // it while a group is made.
    std::recursive_mutex mutex_;
    bool is_connecting_ = false;
    std::atomic<std::shared_ptr<device::DeviceGroup>> group_;
    enum class Route { kUnknown, kNvlink, kHost };
    std::atomic<Route> route_{Route::kUnknown};
    std::atomic<bool> is_aborted_{false};
    std::optional<at::Device> device_;
    int rendezvous_count_ = 0;
    std::size_t timed_steps_ = 0;                        // that a group, once it is made, records
    std::array<std::optional<c10::Stream>, 3> streams_;  // by channel
    std::unique_ptr<Poller, LeaveToParent> poller_;      // once a work is watched
};

}  // namespace pccl::backend
