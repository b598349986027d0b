// DeviceGroup: the collectives of a group whose ranks have a GPU each on one NVLink host.
//
//     auto group =
//         DeviceGroup::create({.rank = rank, .size = size, .store = store, .device = gpu});
//     (*group)->launch({.kind = CollectiveKind::kAllReduce, ...}, stream);
//     (*group)->exchange({.sends = ..., .receives = ...}, stream);
//
// Launches are asynchronous, in the order of the stream, and one after the other: one on another
// stream waits for the last, and so do replays of graphs. Their order must be the same on all
// ranks. Messages keep an order of their own between each pair of ranks; sends wait for earlier
// sends alone, and receives for receives. Nothing is allocated and no handle is opened after an
// allocation's first use, so launches can be captured into CUDA graphs once a like one has run.
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

#include "csrc/abi/device_team.h"
#include "csrc/base/clock.h"
#include "csrc/base/fork.h"
#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/collective/collective.h"
#include "csrc/device/copy_engine_gather.h"
#include "csrc/device/device_rendezvous.h"
#include "csrc/device/device_stage.h"
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

struct DeviceGroupOptions {
    Rank rank = 0;
    int size = 1;
    std::shared_ptr<bootstrap::Store> store{};  // of this group alone
    std::string name{};                         // for flight records, as what follows
    std::vector<std::uint64_t> global_ranks{};  // of the members, in the whole job
    int device = 0;                             // as CUDA numbers it in this process
    std::chrono::milliseconds timeout{30 *
                                      60'000};  // of rendezvous, and of launches: set_timeout()
    sys::cuda::Driver* driver = nullptr;        // null: the machine's
    // false: as where GPUs do not reach each other; true: kernels also where ranks that share a GPU
    // take turns (gpu_sharing.h)
    std::optional<bool> peer_access{};
    Preferences preferences{};  // the same on all ranks, but for `copy_engines`: rank 0's counts
    // Rank 0's count.
    std::string algorithms{};  // schedules instead of kernels: "all_reduce=ring" (algorithm_list.h)
    // They are of it; and of what it has loaded, launches choose by their sizes.
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in();
    // Of why the group is over, what users see: who the ranks are. Default: as it is.
    std::function<Status(const Status&)> explain{};
};

/// What one rank sends to another, or gets from it; memory is the GPU's.
struct DeviceMessage {
    Rank peer = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
};

class PCCL_API DeviceGroup {
   public:
    /// Called by all ranks at once. kUnsupported, on all of them alike, where the GPUs do not reach
    /// each other: more than 8 ranks, several hosts, no peer access; it says what is in the way on
    /// which rank. kMismatch likewise, where ranks prefer other launches, and kUnavailable, where a
    /// rank has no GPU or its build no CUDA. kTimeout and kPeerLost name a rank, also one whose
    /// `cancellation` was set, which returns why.
    static Result<std::unique_ptr<DeviceGroup>> create(const DeviceGroupOptions& options,
                                                       const Cancellation* cancellation = nullptr);
    /// Waits a moment for what was launched, and ends what still waits for peers then. Memory of a
    /// kernel that does not come to its end, behind others in its stream, is never given back.
    ~DeviceGroup();
    DeviceGroup(const DeviceGroup&) = delete;
    DeviceGroup& operator=(const DeviceGroup&) = delete;

    [[nodiscard]] Rank rank() const { return options_.rank; }
    [[nodiscard]] int size() const { return options_.size; }
    /// The group's part of the GPU memory that groups of this process share on this rank's device.
    [[nodiscard]] std::size_t heap_bytes() const { return heap_->bytes(); }

    /// Blocks are GPU memory, and may lie anywhere. Errors: kInvalidArgument, kUnsupported, and
    /// what health() returns.
    [[nodiscard]] Status launch(const Collective& collective, kernels::Stream stream,
                                const DeviceLaunch& wanted = {});
    /// All of them, in as few launches as can be: those alike share one, unless `wanted`, or the
    /// group's preferences, say how they run. No output may be part of another one's tensors.
    [[nodiscard]] Status launch_all(std::span<const Collective> collectives, kernels::Stream stream,
                                    const DeviceLaunch& wanted = {});
    /// Sends and receives at once, in one launch where no rank is named twice on one side. Messages
    /// from one rank to another meet in the order of their launches; empty ones do not travel.
    struct Exchange {
        std::span<const DeviceMessage> sends{};
        std::span<const DeviceMessage> receives{};
    };
    [[nodiscard]] Status exchange(const Exchange& messages, kernels::Stream stream);
    /// How launch() would do it for a collective of blocks of `bytes` on all ranks.
    [[nodiscard]] std::vector<PlannedLaunch> explain(CollectiveKind kind, std::size_t bytes) const;
    /// Compute capability of rank 0's GPU, 90 for sm_90, whose thresholds count for all.
    [[nodiscard]] int architecture() const { return gpus_.architecture; }
    /// Asks the peers to map the allocation of `memory`, so that its first use need not wait.
    [[nodiscard]] Status announce(const void* memory);
    /// How long later launches wait, from when a kernel begins to, unless they say otherwise.
    void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
    /// ok, or why the group is over: a peer that is gone or has left, kernels that gave up waiting,
    /// a launch that failed here. kTimeout, kPeerLost and kMismatch name a rank. Peers are told.
    [[nodiscard]] Status health() const;
    /// From the next launch on, which must be the same on all ranks: else that fails, on all of
    /// them. A program's first launch cannot be captured into a graph.
    void choose_from(std::shared_ptr<const schedule::Catalogue> catalogue);
    /// Whether a kernel of this rank has given up waiting, and left its results undone.
    [[nodiscard]] bool has_given_up() const;
    /// Records when the steps of this rank happen in the next schedules, as long as there is room
    /// for so many, each counted once for each block that shares it; 0: no longer. Of a graph, the
    /// last replay counts. Waits for what was launched. kInvalidArgument above kMostTimedSteps.
    static constexpr std::size_t kMostTimedSteps = std::size_t{1} << 22U;
    [[nodiscard]] Status record_timeline(std::size_t most);
    /// What was recorded; ends it. Waits for what was launched.
    [[nodiscard]] Result<schedule::TimedSteps> take_timeline();
    /// Makes kernels that wait end, here and at the peers, and every later launch fail with
    /// kAborted.
    void abort();
    /// Returns when the GPU has done what was launched; false where it has not by `deadline`.
    [[nodiscard]] bool await_launches(Deadline deadline);
    /// Whether a launch in `stream` would go into a CUDA graph, or that cannot be said.
    [[nodiscard]] bool is_captured(kernels::Stream stream) const;
    /// Makes the group's GPU current on this thread.
    [[nodiscard]] Status use_device() const { return driver_.use(options_.device); }
    /// This thread watches the group's GPU from now on, and disturbs no capture of others.
    [[nodiscard]] Status adopt_thread() const;

   private:
    DeviceGroup(const DeviceGroupOptions& options, sys::cuda::Driver& driver);
    /// kUnavailable in a child of fork(), which must not even wait for a lock.
    [[nodiscard]] Status check_process() const;
    Status meet(const DeviceRendezvous& rendezvous);
    Status share_memory(Deadline deadline);
    Status allocate_control();
    /// How LL128 lines come between these GPUs; kNone where they are not tried.
    [[nodiscard]] Result<abi::LL128Trial> try_ll128(Deadline deadline);
    [[nodiscard]] Status launch_trial(kernels::Stream stream);
    [[nodiscard]] Result<abi::LL128Trial> await_trial(Deadline deadline) const;
    Result<int> agree_on_placement(const DeviceRendezvous& rendezvous);
    Status agree_on_preferences(const DeviceRendezvous& rendezvous);
    /// On a thread of its own: whether no kernel runs any more.
    [[nodiscard]] bool end_kernels();
    void keep_memory();
    /// Ends the group for `why`, on all ranks; nothing, where it has ended already.
    void end(const Status& why) const;
    void stop_kernels() const;
    /// health(), as the peers get it.
    [[nodiscard]] Status why_over() const;
    [[nodiscard]] Status given_up() const;
    /// And whether a peer may still use this rank's tensors.
    [[nodiscard]] Status with_doubt(const Status& why) const;
    /// In the flight record, which is written to its file once unless this rank aborted the group.
    void record_end(const Status& why) const;
    [[nodiscard]] Status explained(const Status& why) const {
        return options_.explain ? options_.explain(why) : why;
    }
    /// Launches that follow one another, and the memory they share.
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
    /// Blocks as the kernel gets them, and where the peers see them.
    struct Shared {
        std::vector<Block> staged{};  // in place of the blocks, where peers cannot map those
        std::uint64_t at[abi::kMostDevices]{};
    };
    /// Begins a call: one at a time, whose waits end after `timeout`.
    [[nodiscard]] std::unique_lock<std::mutex> enter(
        std::optional<std::chrono::milliseconds> timeout = {});
    /// Of the launches that follow, as the flight recorder knows them.
    void log(std::span<const Collective> collectives, kernels::Stream stream,
             const DeviceLaunch& wanted);
    void log(const Exchange& messages, kernels::Stream stream);
    /// What a logged call returns that has come to `outcome`. If it failed though nothing was wrong
    /// with it, peers may wait for what this rank has not launched: then the group is over.
    Status settle(Status outcome);
    /// Calls launch(), of a collective, behind the one before it; nobody else here launches
    /// meanwhile.
    template <typename Launch>
    Status launch_in_order(kernels::Stream stream, const kernels::Plan& plan, Launch launch) {
        PCCL_TRY(collectives_.order.begin(stream));
        PCCL_ASSIGN_OR_RETURN(
            const auto permit,
            window_->begin({.group = this, .stream = stream, .blocks = plan.blocks}));
        PCCL_TRY(launch());
        return collectives_.order.end(stream);
    }
    /// Without NVLink: a group of one rank.
    Status copy_alone(const Collective& collective, kernels::Stream stream);
    Status launch_alone(const Collective& collective, kernels::Stream stream,
                        const DeviceLaunch& wanted);
    Status launch_one(const Collective& collective, kernels::Stream stream,
                      const DeviceLaunch& wanted);
    Status launch_together(std::span<const Collective> collectives, kernels::Stream stream,
                           const DeviceLaunch& wanted);
    /// The schedule that `wanted` asks for, or else the group's preferences, or one that is loaded;
    /// null where a kernel of the collective's own does it.
    Result<schedule::SourcePtr> schedule_for(const Collective& collective,
                                             const DeviceLaunch& wanted) const;
    /// On a thread of its own: body(), when what was launched has ended.
    template <typename Body>
    Status when_done(Body body);
    Status launch_schedule(const Collective& collective, const schedule::SourcePtr& source,
                           kernels::Stream stream, const DeviceLaunch& wanted);
    /// The first of them, as far as kernels of their own do them, in the way that the library
    /// likes.
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
    /// If one of them must be staged, all are.
    Result<std::vector<Shared>> share_sides(std::span<const Side> sides, DataType type,
                                            DeviceStage& stage);
    [[nodiscard]] Deadline deadline() const {
        return Deadline::after(std::chrono::nanoseconds(team_.timeout_ns));
    }
    Status locate(Side blocks, DataType type, Shared& shared);
    /// Of collectives of one kind and type.
    struct Tensors {
        std::vector<Shared> inputs;
        std::vector<Shared> outputs;
    };
    /// What the peers need of them, in the memory of `collectives_`.
    Result<Tensors> share_tensors(std::span<const Collective> collectives);
    Status copy_in(std::span<const Collective> collectives, const Tensors& tensors,
                   kernels::Stream stream);
    Status copy_out(std::span<const Collective> collectives, const Tensors& tensors,
                    kernels::Stream stream);
    Status exchange_all(const Exchange& messages, kernels::Stream stream);
    /// begin() or end() of the sequences that `messages` are in.
    Status keep_order(Status (LaunchOrder::*side)(sys::cuda::Stream), const Exchange& messages,
                      kernels::Stream stream);
    Status exchange_once(const Exchange& messages, kernels::Stream stream);

    const DeviceGroupOptions options_;
    const ForkMark made_in_;
    sys::cuda::Driver& driver_;
    std::unique_ptr<transport::nvlink::PeerSockets> sockets_;
    std::unique_ptr<transport::nvlink::SymmetricHeap> heap_;
    std::shared_ptr<abi::DeviceControl> control_;
    std::shared_ptr<LaunchLog> log_;
    mutable std::once_flag is_recorded_;
    abi::DeviceTeam team_{};
    Preferences preferences_;
    std::string algorithms_;
    kernels::Gpus gpus_;  // by rank 0's architecture
    std::atomic<std::chrono::milliseconds> timeout_;
    mutable std::mutex
        mutex_;  // one call at a time; guards what of team_ is a launch's, and what follows
    std::shared_ptr<const schedule::Catalogue> catalogue_;
    LoadedSchedules loaded_;
    LaunchSequence collectives_;
    LaunchSequence sends_;
    LaunchSequence receives_;
    ProgramTimeline timeline_;
    std::uint32_t schedules_ = 0;  // that were launched
    std::unique_ptr<transport::nvlink::RegistrationCache> registrations_;
    std::shared_ptr<LaunchWindow> window_;
    std::unique_ptr<CopyEngineGather> gather_;
    std::unique_ptr<DevicePrograms> programs_;
    bool states_are_exchanged_ = false;
};

}  // namespace pccl::device
