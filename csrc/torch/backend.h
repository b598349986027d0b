// SPDX-License-Identifier: Apache-2.0

// The c10d backend "pccl": maps torch's collectives to the communicator's.
//
// A synchronous operation (async_op=False) runs from start to end on the caller's thread and
// returns a finished work. An asynchronous one is submitted, and its work waits for the event. All
// ranks must issue the operations of a group in the same order; tensors must not be touched until
// their work is done. Strided tensors take part through contiguous copies (staging.h).
//
// CUDA tensors go over NVLink, in stream order (gpu_backend.h). Where GPUs cannot access each
// other, they go through pinned memory as CPU tensors do, and their work ends when the result is on
// the GPU. One backend serves tensors of all devices that this build supports.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/fork.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/comm/communicator.h"
#include "csrc/device/device_memory.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/torch/call.h"
#include "csrc/torch/gpu_backend.h"
#include "csrc/torch/observer.h"
#include "csrc/torch/profiling.h"
#include "csrc/torch/request.h"
#include "csrc/torch/work.h"

namespace pccl::comm {
class PhaseNetwork;
}

namespace pccl::backend {

inline constexpr const char* kBackendName = "pccl";

/// Options of a group. The base class holds timeout, group_name, group_desc and
/// global_ranks_in_group.
struct PcclOptions final : c10d::Backend::Options {
    PcclOptions() : Options(kBackendName) {}

    std::string transports;            // "shm,tcp": restricts this group; empty: all of the process
    std::string algorithm;             // "all_reduce=ring"; empty: PCCL_ALGORITHM
    std::optional<bool> copy_engines;  // nullopt: PCCL_GPU_COPY_ENGINES; rank 0's value applies
    std::string gpu;                   // as CommunicatorOptions::gpu
    std::optional<int> max_blocks;     // of GPUs, as the next member: Preferences
    std::optional<kernels::Protocol> protocol;
    std::optional<int> least;                     // as ShrinkOptions::least
    std::size_t timeline = 0;                     // steps to record from the group's beginning
    std::shared_ptr<comm::PhaseNetwork> network;  // as CommunicatorOptions::network
    bool switches_phases = true;

    [[nodiscard]] const std::string& algorithms() const {
        return algorithm.empty() ? process_config().algorithm : algorithm;
    }
    [[nodiscard]] device::Preferences preferences() const {
        return {.copy_engines = copy_engines.value_or(process_config().gpu_copy_engines),
                .most_blocks = max_blocks.value_or(abi::kMostBlocks),
                .protocol = protocol};
    }
};

class PcclBackend final : public c10d::Backend {
   public:
    using WorkPtr = c10::intrusive_ptr<c10d::Work>;
    using Tensors = std::vector<at::Tensor>;
    using TensorLists = std::vector<Tensors>;
    using StorePtr = c10::intrusive_ptr<c10d::Store>;

    /// Joins the other ranks through `store`, which must be used by this group alone. Returns once
    /// all ranks have joined.
    PcclBackend(const StorePtr& store, Rank rank, int size,
                c10::intrusive_ptr<PcclOptions> options);
    /// Wraps an existing group; `store` is for its GPUs.
    PcclBackend(std::shared_ptr<comm::CommunicatorImpl> communicator, std::shared_ptr<Store> store,
                c10::intrusive_ptr<PcclOptions> options);
    ~PcclBackend() override;
    PcclBackend(const PcclBackend&) = delete;
    PcclBackend& operator=(const PcclBackend&) = delete;

    const std::string getBackendName() const override { return kBackendName; }
    c10::intrusive_ptr<Options> getBackendOptions() override;
    bool supportsSplitting() const override { return true; }
    bool supportsCoalescing() const override { return true; }

    WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
    WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPtr allreduce_coalesced(Tensors& tensors,
                                const c10d::AllreduceCoalescedOptions& options) override;
    WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
    WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                      const c10d::AllgatherOptions& options) override;
    WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                            const c10d::AllgatherOptions& options) override;
    WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& options) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) override;
    WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                   const c10d::GatherOptions& options) override;
    WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                    const c10d::ScatterOptions& options) override;
    WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                           const c10d::ReduceScatterOptions& options) override;
    WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::ReduceScatterOptions& options) override;
    WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                          std::vector<std::int64_t>& output_splits,
                          std::vector<std::int64_t>& input_splits,
                          const c10d::AllToAllOptions& options) override;
    WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                     const c10d::AllToAllOptions& options) override;
    WorkPtr barrier(const c10d::BarrierOptions& options) override;
    /// Calls Communicator::explain() for the collective of that name.
    std::vector<Prediction> explain(const std::string& collective, std::size_t bytes);
    /// Returns the group of GPUs, for explain() of CUDA tensors. Throws where there is none (yet).
    [[nodiscard]] std::shared_ptr<const device::DeviceGroupImpl> gpus_to_explain() const;

    void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

    WorkPtr send(Tensors& tensors, int destination, int tag) override;
    WorkPtr recv(Tensors& tensors, int source, int tag) override;
    WorkPtr recvAnysource(Tensors& tensors, int tag) override;

    /// Opens a window until endCoalescing(): asynchronous operations of any kind start at once and
    /// are gathered. The end returns one work for all of them, finished if there were none.
    void startCoalescing() override;
    WorkPtr endCoalescing() override;

    /// Collectives count from 0; messages are not counted.
    void setSequenceNumberForGroup() override {}
    std::uint64_t getSequenceNumberForGroup() override;

    void registerOnCompletionHook(WorkObserver::Hook&& hook) override;
    void waitForPendingWorks() override {
        check_process();
        observer_->wait_for_works();
    }
    void enableCollectivesTiming() override { observer_->enable_timing(); }

    /// Returns a backend for `ranks` of this one, or null where this rank is not among them. A
    /// second call for a group that still exists returns it, because torch calls once per device.
    c10::intrusive_ptr<Backend> split(const StorePtr& store, const std::vector<int>& ranks,
                                      const c10::intrusive_ptr<Options>& options) override;
    bool supportsShrinking() const override { return true; }
    /// Makes a smaller group. All remaining ranks must call it with the same ranks; it aborts
    /// operations in flight.
    c10::intrusive_ptr<Backend> shrink(const std::vector<std::int64_t>& excluded, int flags,
                                       const c10::intrusive_ptr<Options>& options) override;
    [[nodiscard]] const comm::CommunicatorImpl& communicator() const { return *communicator_; }
    [[nodiscard]] comm::CommunicatorImpl& communicator() { return *communicator_; }
    /// Like those of comm::CommunicatorImpl, for CUDA tensors, too.
    Result<capsule::VerifiedCapsule> load_capsule(const Result<capsule::CapsuleFile>& file,
                                                  const std::optional<std::string>& sizes);
    Status unload_capsule(const std::string& name);
    Status record_timeline(std::size_t most);
    Result<schedule::TimedSteps> take_timeline();
    bool supportsTensorAlloc(c10::DeviceIndex) override { return device::has_gpu_driver(); }
    /// Allocates `size` elements on a CUDA device; the peers begin to map them at once.
    at::Tensor allocateTensor(long size, at::TensorOptions options) override;
    /// Makes the group of GPUs now instead of with the first CUDA tensor.
    void eagerConnectSingleDevice(at::Device device) override {
        static_cast<void>(gpu_.connect(device));
    }
    void setTimeout(std::chrono::milliseconds timeout) override;
    c10d::ErrorType getError() override;
    void abort() override;
    void shutdown() override;

   private:
    /// Starts the timeline if the options request one.
    void record_from_beginning();
    /// Operations issued since startCoalescing(). Messages of CUDA tensors are held until its end.
    struct CoalescingWindow {
        std::vector<WorkPtr> works;
        std::vector<GpuMessage> messages;
    };

    /// Throws in a child of fork(), where the threads that hold the locks below may be missing.
    void check_process() const;
    /// Ends the operations in flight, and waits for their callbacks.
    void end();

    struct Split;

    /// Returns the sample for calls on tensors like `tensor`.
    [[nodiscard]] Call::Sample sample(const at::Tensor& tensor);
    [[nodiscard]] TensorStaging::StagingPlace place_of(const at::Tensor& tensor);
    WorkPtr perform(Request request, Call call);
    WorkPtr perform_all(Request request, std::span<Call> calls);
    WorkPtr issue_all(Request& request, std::span<Call> calls);
    static void check_devices(std::span<const Call> calls);
    void run_all(PcclWork& work, std::span<Call> calls, const Request& request);
    void submit_all(PcclWork& work, std::span<Call> calls, const Request& request);
    WorkPtr launch_all(const Request& request, std::span<Call> calls);
    WorkPtr receive(Request request, Rank source_or_any, int tag);
    [[nodiscard]] bool goes_by_kernels(const at::Tensor& tensor);
    WorkPtr issue_message(GpuMessage message);
    WorkPtr exchange(std::span<const GpuMessage> messages);
    WorkPtr start(const c10::intrusive_ptr<PcclWork>& work, Result<Event> event,
                  TensorStaging staging);
    [[nodiscard]] ProfiledGroup profiled_group() const;
    /// Returns body(), which issues `request`.
    template <typename Body>
    WorkPtr recorded(const Request& request, Body body) {
        return profiled(request, [this] { return profiled_group(); }, body);
    }
    [[nodiscard]] c10::intrusive_ptr<PcclWork> make_work(Request& request);
    /// Adds the work to the window if one is open.
    WorkPtr issued(WorkPtr work);

    [[nodiscard]] Call all_gather_call(const Tensors& outputs, const at::Tensor& input);
    [[nodiscard]] Call all_gather_call(const at::Tensor& output, const at::Tensor& input);
    [[nodiscard]] Call reduce_scatter_call(const at::Tensor& output, const at::Tensor& input,
                                           const TensorReduction& reduction);
    [[nodiscard]] c10::intrusive_ptr<PcclOptions> child_options(const std::vector<int>& ranks,
                                                                const Options& wanted) const;
    void check_list(const Tensors& tensors, const char* what) const;

    const c10::intrusive_ptr<PcclOptions> options_;
    const std::shared_ptr<WorkObserver> observer_{new WorkObserver, LeaveToParent()};
    std::shared_ptr<comm::CommunicatorImpl> communicator_;
    GpuBackend gpu_;
    std::atomic<std::uint64_t> sequence_{0};

    std::mutex mutex_;  // guards window_
    std::optional<CoalescingWindow> window_;

    std::mutex split_mutex_;
    std::unique_ptr<Split> last_split_;  // guarded by split_mutex_
};

}  // namespace pccl::backend
