// SPDX-License-Identifier: Apache-2.0

// DeviceGroup: the collectives of a group of ranks with one GPU each on one NVLink host.
//
//     auto group =
//         DeviceGroup::create({.rank = rank, .size = size, .store = store, .device = gpu});
//     (*group)->launch({.kind = CollectiveKind::kAllReduce, ...}, stream);
//     (*group)->exchange({.sends = ..., .receives = ...}, stream);
//
// Launches are asynchronous and run in stream order, one after the other: a launch on another
// stream waits for the last one, and so do replays of graphs. Their order must be the same on all
// ranks. Messages keep an order of their own between each pair of ranks: sends wait only for
// earlier sends, and receives for receives. Nothing is allocated and no handle is opened after the
// first use of an allocation, so launches can be captured into CUDA graphs once a similar one has
// run.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/store.h>
#include "csrc/abi/device_team.h"
#include "csrc/base/fork.h"
#include "csrc/base/rank_bits.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/collective/collective.h"
#include "csrc/device/copy_engine_gather.h"
#include "csrc/device/device_rendezvous.h"
#include "csrc/device/device_stage.h"
#include "csrc/device/gpu_path.h"
#include "csrc/device/gpu_sharing.h"
#include "csrc/device/launch/launch_log.h"
#include "csrc/device/launch/launch_order.h"
#include "csrc/device/launch/launch_window.h"
#include "csrc/device/launch/lowering.h"
#include "csrc/device/launch/planned_launches.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/device/programs/device_programs.h"
#include "csrc/device/programs/loaded_schedules.h"
#include "csrc/device/programs/program_timeline.h"
#include "csrc/kernels/launch.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/registration_cache.h"
#include "csrc/transport/nvlink/symmetric_heap.h"

namespace pccl::device {

struct DeviceGroupImplOptions {
    Rank rank = 0;
    int size = 1;
    std::shared_ptr<Store> store{};             // for this group only
    std::string name{};                         // for flight records, as the next
    std::vector<std::uint64_t> global_ranks{};  // of the members, in the whole job
    int device = 0;                             // CUDA device number in this process
    std::chrono::milliseconds timeout{30 *
                                      60'000};  // of rendezvous, and of launches: set_timeout()
    sys::cuda::Driver* driver = nullptr;        // null: the machine's driver
    // false: treats the GPUs as if they could not reach each other. true: uses kernels even where
    // ranks that share a GPU are time-sliced (gpu_sharing.h).
    std::optional<bool> peer_access{};
    // Kernels in host memory, where GPUs do not reach each other. false: none, and create() returns
    // kUnsupported there. true: also where ranks that share a GPU are time-sliced.
    std::optional<bool> host_kernels{};
    Preferences preferences{};  // the same on all ranks, except `copy_engines`: rank 0's is used
    // Rank 0's value applies to all ranks.
    std::string algorithms{};  // schedules instead of kernels: "all_reduce=ring" (algorithm_list.h)
    // Contains the algorithms above. Launches also choose by size from its loaded schedules.
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in();
    // Adds to the reason why the group ended, for users, e.g. which ranks are meant. Default:
    // unchanged.
    std::function<Status(const Status&)> explain{};
};

/// Message to or from another rank, in GPU memory.
struct PeerMessage {
    Rank peer = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
};

/// Implementation of pccl::DeviceGroup.
class PCCL_API DeviceGroupImpl {
   public:
    /// Creates the group; all ranks call it at the same time. kUnsupported, on all ranks, where
    /// kernels meet nowhere: more than 8 ranks, several hosts, or neither peer access nor host
    /// memory that all GPUs map; it names the obstacle and the rank. kMismatch, on all ranks, where
    /// preferences differ. kUnavailable, on all ranks, where a rank has no GPU or its build no
    /// CUDA. kTimeout and kPeerLost name a rank, also one with a set `cancellation`, which itself
    /// returns the cancellation's reason.
    static Result<std::unique_ptr<DeviceGroupImpl>> create(
        const DeviceGroupImplOptions& options, const Cancellation* cancellation = nullptr);
    /// Waits shortly for the launches to finish, then ends kernels that still wait for peers. The
    /// memory of a kernel that does not finish, because it is behind others in its stream, is never
    /// freed.
    ~DeviceGroupImpl();
    DeviceGroupImpl(const DeviceGroupImpl&) = delete;
    DeviceGroupImpl& operator=(const DeviceGroupImpl&) = delete;

    [[nodiscard]] Rank rank() const { return options_.rank; }
    [[nodiscard]] int size() const { return options_.size; }
    /// Returns this group's share of the memory, of the GPU or of the host, that groups of this
    /// process share.
    [[nodiscard]] std::size_t heap_bytes() const { return heap_->bytes(); }
    /// Returns where its kernels meet.
    [[nodiscard]] kernels::GpuPath path() const { return gpus_.path; }
    /// Returns why they do not meet in the GPUs' memory; empty where they do.
    [[nodiscard]] const std::string& why_path() const { return why_path_; }
    /// Returns the peers with which it exchanges messages of schedules in the GPUs' memory, in a
    /// group that meets in the host.
    [[nodiscard]] RankBits linked() const { return linked_; }

    /// Launches a collective. Blocks are GPU memory of any allocator. Errors: kInvalidArgument,
    /// kUnsupported, and those of health().
    [[nodiscard]] Status launch(const Collective& collective, kernels::Stream stream,
                                const DeviceLaunch& wanted = {});
    /// Launches all collectives in as few kernels as possible: those of one kind share a launch,
    /// unless `wanted` or the group's preferences choose how they run. No output may overlap
    /// another collective's tensors.
    [[nodiscard]] Status launch_all(std::span<const Collective> collectives, kernels::Stream stream,
                                    const DeviceLaunch& wanted = {});
    /// Messages of one call: sends and receives.
    struct MessageExchange {
        std::span<const PeerMessage> sends{};
        std::span<const PeerMessage> receives{};
    };
    /// Sends and receives at once: in one launch if each side names each rank at most once,
    /// otherwise in several. Messages from one rank to another match in the order of their
    /// launches. Empty messages are not sent.
    [[nodiscard]] Status exchange(const MessageExchange& messages, kernels::Stream stream);
    /// Returns the launches that launch() would make for a collective of blocks of `bytes` on all
    /// ranks.
    [[nodiscard]] std::vector<PlannedLaunch> explain(CollectiveKind kind, std::size_t bytes) const;
    /// Returns the compute capability of rank 0's GPU (90 for sm_90). Its thresholds apply to all
    /// ranks.
    [[nodiscard]] int architecture() const { return gpus_.architecture; }
    /// Requests that the peers map the allocation of `memory`, so that its first use does not wait.
    [[nodiscard]] Status announce(const void* memory);
    /// See <pccl/device_group.h>.
    void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
    /// See <pccl/device_group.h>.
    [[nodiscard]] Status health() const;
    /// Uses `catalogue` from the next launch on. That launch must be the same on all ranks;
    /// otherwise it fails on all ranks. The first launch of a program cannot be captured into a
    /// graph.
    void choose_from(std::shared_ptr<const schedule::Catalogue> catalogue);
    /// Returns whether a kernel of this rank has given up waiting and left its results incomplete.
    [[nodiscard]] bool has_given_up() const;
    /// Most steps of a timeline.
    static constexpr std::size_t kMostTimedSteps = std::size_t{1} << 22U;
    /// Records the times of this rank's steps in the next schedules, up to `most` steps; a step
    /// counts once for each block that shares it. 0 ends the recording. Only the last replay of a
    /// graph counts. Waits for earlier launches. kInvalidArgument above kMostTimedSteps.
    [[nodiscard]] Status record_timeline(std::size_t most);
    /// Returns the recorded steps and ends the recording. Waits for earlier launches.
    [[nodiscard]] Result<schedule::TimedSteps> take_timeline();
    /// See <pccl/device_group.h>.
    void abort();
    /// Returns true when the GPU has finished all launches; false where it has not by `deadline`.
    [[nodiscard]] bool await_launches(Deadline deadline);
    /// Returns whether a launch in `stream` would go into a CUDA graph, or whether that is unknown.
    [[nodiscard]] bool is_captured(kernels::Stream stream) const;
    /// Makes the group's GPU current on this thread.
    [[nodiscard]] Status use_device() const { return driver_.use(options_.device); }
    /// Lets this thread watch the group's GPU without invalidating captures of other threads.
    [[nodiscard]] Status adopt_thread() const;

   private:
    DeviceGroupImpl(const DeviceGroupImplOptions& options, sys::cuda::Driver& driver);
    /// Returns kUnavailable in a child of fork(), which must not even wait for a lock.
    [[nodiscard]] Status check_process() const;
    Status meet(const DeviceRendezvous& rendezvous);
    /// Makes the heaps on the path that all ranks can use.
    Status make_heaps(const DeviceRendezvous& rendezvous, std::span<const GpuPlacement> placements);
    /// Makes heaps that are not mapped yet.
    Status make_heap_of(transport::nvlink::MemoryKind kind, Deadline deadline);
    /// Maps the heaps of peers, and sets those that it has mapped in `reached`. Returns the first
    /// obstacle.
    Status map_peers(std::span<const GpuPlacement> placements, RankBits& reached);
    /// Makes the memory that programs need from the beginning, since schedules carry long
    /// collectives; in the host also the heap.
    Status make_states_for(const ChosenPath& chosen, Deadline deadline);
    [[nodiscard]] Result<std::unique_ptr<transport::nvlink::SymmetricHeap>> make_states(
        transport::nvlink::MemoryKind kind, Deadline deadline) const;
    /// Returns the number of the GPU in this process, if it sees that GPU.
    [[nodiscard]] Result<std::optional<int>> visible(const GpuPlacement& placement) const;
    [[nodiscard]] Status check_reach(const GpuPlacement& placement, Rank rank) const;
    [[nodiscard]] Status check_nvlinks(std::span<const GpuPlacement> placements) const;
    Status share_memory(Deadline deadline);
    Status allocate_control();
    /// Returns the result of the LL128 trial between these GPUs; kNone where it is not tried.
    [[nodiscard]] Result<abi::LL128Trial> try_ll128(Deadline deadline);
    [[nodiscard]] Status launch_trial(kernels::Stream stream);
    [[nodiscard]] Result<abi::LL128Trial> await_trial(Deadline deadline) const;
    Result<std::vector<GpuPlacement>> agree_on_placement(const DeviceRendezvous& rendezvous);
    Status agree_on_preferences(const DeviceRendezvous& rendezvous);
    /// Returns whether no kernel runs any more. Runs on a thread of its own.
    [[nodiscard]] bool end_kernels();
    void keep_memory();
    /// Ends the group with reason `why` on all ranks; does nothing where it has already ended.
    void end(const Status& why) const;
    void stop_kernels() const;
    /// Returns health() in the form that the peers receive.
    [[nodiscard]] Status why_over() const;
    [[nodiscard]] Status given_up() const;
    /// Adds to `why` whether a peer may still access this rank's tensors.
    [[nodiscard]] Status with_doubt(const Status& why) const;
    /// Records the end in the flight record, and writes that to its file once, unless this rank
    /// aborted the group.
    void record_end(const Status& why) const;
    [[nodiscard]] Status explained(const Status& why) const {
        return options_.explain ? options_.explain(why) : why;
    }
    /// Launches that follow one another, and the memory that they share.
    struct LaunchSequence {
        LaunchSequence(sys::cuda::Driver& driver, int device)
            : order(driver), inputs(driver, device), outputs(driver, device) {}
        void keep_memory() {
            inputs.keep_memory();
            outputs.keep_memory();
        }
        LaunchOrder order;
        DeviceStage inputs;
        DeviceStage outputs;
    };
    std::array<LaunchSequence*, 3> sequences() { return {&collectives_, &sends_, &receives_}; }
    /// Blocks as the kernel gets them, and their addresses for the peers.
    struct Shared {
        std::vector<Block> staged{};  // staged copies, where peers cannot map the blocks
        std::uint64_t at[abi::kMostDevices]{};
    };
    /// Begins a call and locks out others. The waits of the call end after `timeout`.
    [[nodiscard]] std::unique_lock<std::mutex> enter(
        std::optional<std::chrono::milliseconds> timeout = {});
    /// Adds the following launches to the flight record.
    void log(std::span<const Collective> collectives, kernels::Stream stream,
             const DeviceLaunch& wanted);
    void log(const MessageExchange& messages, kernels::Stream stream);
    /// Returns the result of a logged call with `outcome`. A failed call may leave peers waiting
    /// for a missing launch of this rank; then it also ends the group, unless the call was invalid
    /// itself.
    Status result_of(Status outcome);
    /// Calls launch() of a collective in order behind the previous one, within the process's launch
    /// window.
    template <typename Launch>
    Status launch_in_order(kernels::Stream stream, const kernels::LaunchPlan& plan, Launch launch) {
        PCCL_TRY(collectives_.order.begin(stream));
        PCCL_ASSIGN_OR_RETURN(
            const auto permit,
            window_->begin({.group = this, .stream = stream, .blocks = plan.blocks}));
        PCCL_TRY(launch());
        return collectives_.order.end(stream);
    }
    /// Copies input to output for a group of one rank, which needs no NVLink.
    Status copy_alone(const Collective& collective, kernels::Stream stream);
    Status launch_alone(const Collective& collective, kernels::Stream stream,
                        const DeviceLaunch& wanted);
    Status launch_one(const Collective& collective, kernels::Stream stream,
                      const DeviceLaunch& wanted);
    /// Launches a collective whose kernels meet in host memory: by LL, or by a schedule.
    Status launch_over_pcie(const Collective& collective, kernels::Stream stream,
                            const DeviceLaunch& wanted);
    /// Launches a collective whose lengths only pairs of ranks have.
    Status launch_pairs(const Collective& collective, kernels::Stream stream,
                        const DeviceLaunch& wanted);
    /// Launches blocks of several lengths, which all ranks have, as blocks of the longest one.
    Status launch_padded(const Collective& collective, kernels::Stream stream,
                         const DeviceLaunch& wanted);
    /// Launches an all_reduce, a reduce or a reduce_scatter in pieces that LL carries.
    Status launch_in_pieces(const Collective& collective, kernels::Stream stream,
                            const DeviceLaunch& wanted);
    Status launch_together(std::span<const Collective> collectives, kernels::Stream stream,
                           const DeviceLaunch& wanted);
    /// Returns the schedule for the launch: from `wanted`, else from the group's preferences, else
    /// a loaded one; null where the collective's own kernel runs.
    Result<schedule::SourcePtr> schedule_for(const Collective& collective,
                                             const DeviceLaunch& wanted) const;
    [[nodiscard]] std::vector<PlannedLaunch> explain_locked(CollectiveKind kind,
                                                            std::size_t bytes) const;
    [[nodiscard]] std::vector<PlannedLaunch> planned_pairs(CollectiveKind kind,
                                                           std::size_t bytes) const;
    [[nodiscard]] PlannedLaunch planned_program(const schedule::ScheduleSource& schedule,
                                                std::size_t bytes, std::string why) const;
    /// Runs body() on a thread of its own after all launches have finished.
    template <typename Body>
    Status when_done(Body body);
    /// Returns body(), which may allocate and copy. Where `stream` is captured it runs on a thread
    /// of its own, which the capture does not restrict.
    template <typename Body>
    Status outside_captures(kernels::Stream stream, Body body) {
        if (!is_captured(stream)) return body();
        Status outcome;
        {
            const BackgroundThread thread("pccl-gpu-load", [&] {
                outcome = adopt_thread();
                if (outcome.is_ok()) outcome = body();
            });
        }
        return outcome;
    }
    /// Returns kInvalidArgument for a launch that exchanges states and goes into a graph.
    [[nodiscard]] Status check_first_capture(kernels::Stream stream) const;
    /// Returns whether this rank's program state has the addresses of the others.
    [[nodiscard]] bool are_states_known() const {
        return states_are_exchanged_ || states_ != nullptr;
    }
    /// Sets the addresses of this rank's program state for the peers, which have mapped it then.
    Status share_state(abi::PeerPointers& peer_pointers);
    Status launch_schedule(const Collective& collective, const schedule::SourcePtr& source,
                           kernels::Stream stream, const DeviceLaunch& wanted);
    /// Returns the longest prefix of `collectives` that run in kernels of their own, as the library
    /// chooses.
    [[nodiscard]] std::span<const Collective> left_to_kernels(
        std::span<const Collective> collectives, const DeviceLaunch& wanted) const;
    Status launch_batch(std::span<const Collective> collectives, kernels::Stream stream);
    Status launch_large_batch(std::span<const Collective> collectives, kernels::Stream stream);
    Status launch_shared(const Collective& collective, kernels::Launch& launch,
                         kernels::Stream stream);
    Status pull(const Collective& collective, const kernels::Launch& launch,
                kernels::Stream stream);
    using Side = std::span<const Block>;
    Result<Shared> share(Side blocks, DataType type, DeviceStage& stage);
    /// Shares the blocks of all sides. If one of them must be staged, all are.
    Result<std::vector<Shared>> share_sides(std::span<const Side> sides, DataType type,
                                            DeviceStage& stage);
    [[nodiscard]] Deadline deadline() const {
        return Deadline::after(std::chrono::nanoseconds(team_.timeout_ns));
    }
    Status locate(Side blocks, DataType type, Shared& shared);
    /// Shared tensors of collectives of one kind and type.
    struct Tensors {
        std::vector<Shared> inputs;
        std::vector<Shared> outputs;
    };
    /// Shares the tensors with the peers, staged in the memory of `collectives_` where necessary.
    Result<Tensors> share_tensors(std::span<const Collective> collectives);
    Status copy_in(std::span<const Collective> collectives, const Tensors& tensors,
                   kernels::Stream stream);
    Status copy_out(std::span<const Collective> collectives, const Tensors& tensors,
                    kernels::Stream stream);
    Status exchange_all(const MessageExchange& messages, kernels::Stream stream);
    /// Calls begin() or end() of the sequences that `messages` are in.
    Status keep_order(Status (LaunchOrder::*side)(sys::cuda::Stream),
                      const MessageExchange& messages, kernels::Stream stream);
    Status exchange_once(const MessageExchange& messages, kernels::Stream stream);
    Status exchange_through_host(const MessageExchange& messages, kernels::Stream stream);

    const DeviceGroupImplOptions options_;
    const ForkMark made_in_;
    sys::cuda::Driver& driver_;
    std::unique_ptr<transport::nvlink::PeerSockets> sockets_;
    std::unique_ptr<transport::nvlink::SymmetricHeap> heap_;
    // States of all ranks' programs from the beginning on, where schedules carry long collectives.
    std::unique_ptr<transport::nvlink::SymmetricHeap> states_;
    // Further states in the GPUs' memory, for the ranks of `linked_`.
    std::unique_ptr<transport::nvlink::SymmetricHeap> linked_states_;
    RankBits linked_ = 0;
    std::string why_path_;
    std::shared_ptr<abi::DeviceControl> control_;
    std::shared_ptr<LaunchLog> log_;
    mutable std::once_flag is_recorded_;
    abi::DeviceTeam team_{};
    Preferences preferences_;
    std::string algorithms_;
    kernels::Gpus gpus_;  // with rank 0's architecture
    std::atomic<std::chrono::milliseconds> timeout_;
    mutable std::mutex mutex_;  // one call at a time; guards the per-launch fields of team_, and
                                // the following members
    std::shared_ptr<const schedule::Catalogue> catalogue_;
    LoadedSchedules loaded_;
    LaunchSequence collectives_;
    LaunchSequence sends_;
    LaunchSequence receives_;
    ProgramTimeline timeline_;
    std::uint32_t schedules_ = 0;  // number of launched schedules
    std::unique_ptr<transport::nvlink::RegistrationCache> registrations_;
    std::shared_ptr<LaunchWindow> window_;
    std::unique_ptr<CopyEngineGather> gather_;
    std::unique_ptr<DevicePrograms> programs_;
    bool states_are_exchanged_ = false;
};

/// Runs DeviceGroup::create() on a thread of its own, while this thread calls `interrupted` ten
/// times a second. Returns its status where that is not ok; the other ranks then stop waiting. A
/// child of fork() may drop the group and leaves it as it is: CUDA does not work there.
[[nodiscard]] PCCL_API Result<std::shared_ptr<DeviceGroupImpl>> create_interruptibly(
    const DeviceGroupImplOptions& options, const std::function<Status()>& interrupted);

}  // namespace pccl::device
