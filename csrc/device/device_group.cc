// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/device_group.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/base/threads/interruptible.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/device/gpu_sharing.h"
#include "csrc/runtime/flight/flight_dump.h"

namespace pccl::device {
namespace {

using sys::cuda::DeviceAddress;

/// Returns whether the calls differ only in fields that headers do not have. Their numbers may
/// differ: a rank may capture calls that it never replays.
bool look_alike(abi::CollectiveHeader ours, const abi::CollectiveHeader& theirs) {
    ours.sequence = theirs.sequence;
    const abi::CollectiveHeader there = common_part(theirs);
    ours = common_part(ours);
    return std::memcmp(&ours, &there, sizeof ours) == 0;
}

/// Returns the error for a peer whose call differs from `operation`, with the peer's call where it
/// is known.
Status disagreement(const abi::DeviceFault& fault, std::string_view operation) {
    const bool is_known = fault.theirs.magic == abi::kCollectiveMagic;
    const std::string theirs = is_known ? describe_call(fault.theirs) : "another one";
    const std::string_view how =
        is_known && look_alike(fault.ours, fault.theirs)
            ? ", with other split sizes, another plan or capsule, or other calls together with it"
            : "";
    return Status::mismatch(
        fault.peer, concat("ranks disagree: rank ", fault.rank, " runs ", operation, " but rank ",
                           fault.peer, " runs ", theirs, how, "; ", kCallAlike));
}

Status status_of(const abi::DeviceFault& fault, std::string_view operation) {
    if (fault.phase == abi::DevicePhase::kCall) return disagreement(fault, operation);
    const std::string what =
        concat("rank ", fault.rank, " waited for rank ", fault.peer, " in ", operation, ", block ",
               fault.block, " (expected ", fault.expected, ", seen ", fault.seen, ")");
    if (fault.phase == abi::DevicePhase::kLength)
        return Status::mismatch(
            fault.peer, concat("rank ", fault.rank, " sends ", fault.expected, " bytes, but rank ",
                               fault.peer, " expects ", fault.seen, ", in ", operation));
    if (fault.is_abort != 0) return Status::aborted(what);
    return Status::timeout(what, fault.peer);
}

constexpr int kNewestArchitecture = 9999;
constexpr Duration kLongestWaitForPeers = std::chrono::seconds(1);
constexpr Duration kLongestWaitForKernels = std::chrono::seconds(3);  // to end after an abort

/// Keeps the memory for good; not even the end of the process runs its deleter.
void keep_for_good(std::shared_ptr<const void> memory) {
    static std::mutex mutex;
    static auto& kept = *new std::vector<std::shared_ptr<const void>>;
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(memory));
}

Result<sys::cuda::Driver*> driver_of(const DeviceGroupImplOptions& options) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver,
                          sys::cuda::driver_on(options.device, options.driver));
    if (!options.peer_access.value_or(true) && !options.host_kernels.value_or(true))
        return Status::unsupported("PCCL_GPU_PEER_ACCESS=0 and PCCL_GPU_HOST_KERNELS=0");
    return driver;
}

}  // namespace

Result<std::unique_ptr<DeviceGroupImpl>> DeviceGroupImpl::create(
    const DeviceGroupImplOptions& options, const Cancellation* cancellation) {
    PCCL_ASSIGN_OR_RETURN(const auto pre_join, bootstrap::pre_join_at(options.store));
    return make_together(
        {.store = pre_join,
         .rank = options.rank,
         .size = options.size,
         .timeout = options.timeout,
         .cancellation = cancellation},
        [&] { return driver_of(options); },
        [&](sys::cuda::Driver& driver) {
            return std::unique_ptr<DeviceGroupImpl>(new DeviceGroupImpl(options, driver));
        },
        &DeviceGroupImpl::meet);
}

DeviceGroupImpl::DeviceGroupImpl(const DeviceGroupImplOptions& options, sys::cuda::Driver& driver)
    : options_(options),
      driver_(driver),
      gpus_(options.size),
      timeout_(options.timeout),
      collectives_(driver, options.device),
      sends_(driver, options.device),
      receives_(driver, options.device),
      timeline_(driver, options.device) {
    choose_from(options.catalogue);
}

DeviceGroupImpl::~DeviceGroupImpl() {
    // Without programs, all launches have already ended.
    if (programs_ == nullptr || made_in_.is_child()) return;
    bool has_ended = false;
    // A thread of its own does this: the caller's may have another GPU current, or be in the middle
    // of a capture.
    {
        const BackgroundThread ending("pccl-gpu-end", [&] { has_ended = end_kernels(); });
    }
    if (has_ended) return;
    pccl::log(LogLevel::kWarning, "a group of GPUs was destroyed that kernels may still use: ",
              "its memory stays mapped");
    keep_memory();
}

bool DeviceGroupImpl::end_kernels() {
    static_cast<void>(adopt_thread());
    const Deadline deadline = Deadline::after(kLongestWaitForPeers);
    if (await_launches(deadline)) return !health().is_ok() || programs_->await_taken(deadline);
    end(Status::aborted("the group was destroyed while one of its kernels waited"));
    return await_launches(Deadline::after(kLongestWaitForKernels));
}

bool DeviceGroupImpl::await_launches(Deadline deadline) {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(
        sequences(), [&](LaunchSequence* launches) { return launches->order.await_all(deadline); });
}

void DeviceGroupImpl::keep_memory() {
    registrations_->keep_mappings();
    programs_->keep_memory();
    timeline_.keep_memory();
    for (LaunchSequence* launches : sequences()) launches->keep_memory();
    keep_for_good(std::move(heap_));
    keep_for_good(std::move(states_));
    keep_for_good(std::move(linked_states_));
    keep_for_good(control_);
}

Status DeviceGroupImpl::meet(const DeviceRendezvous& rendezvous) {
    PCCL_ASSIGN_OR_RETURN(const auto placements, agree_on_placement(rendezvous));
    PCCL_ASSIGN_OR_RETURN(sockets_, rendezvous.connect());
    PCCL_TRY(agree_on_preferences(rendezvous));
    preferences_.most_blocks = std::min(preferences_.most_blocks, resident_blocks(placements));
    if (options_.driver == nullptr) PCCL_TRY(kernels::load_kernels(options_.size));
    PCCL_TRY(make_heaps(rendezvous, placements));
    return share_memory(rendezvous.deadline());
}

Result<std::vector<GpuPlacement>> DeviceGroupImpl::agree_on_placement(
    const DeviceRendezvous& rendezvous) {
    if (options_.size == 1) return std::vector<GpuPlacement>{};
    PCCL_ASSIGN_OR_RETURN(const auto gpu, driver_.gpu_id(options_.device));
    PCCL_ASSIGN_OR_RETURN(const bool has_mps, driver_.has_mps(options_.device));
    PCCL_ASSIGN_OR_RETURN(const int multiprocessors, driver_.multiprocessors(options_.device));
    return agree_on_placements(rendezvous,
                               {.gpu = gpu,
                                .has_mps = has_mps,
                                .allows_time_slicing = options_.peer_access.value_or(false) ||
                                                       options_.host_kernels.value_or(false),
                                .allows_peer_access = options_.peer_access.value_or(true),
                                .multiprocessors = multiprocessors});
}

Status DeviceGroupImpl::share_memory(Deadline deadline) {
    PCCL_TRY(allocate_control());
    PCCL_ASSIGN_OR_RETURN(window_, LaunchWindow::of(driver_, options_.device));
    PCCL_ASSIGN_OR_RETURN(
        registrations_,
        transport::nvlink::RegistrationCache::create(
            {.driver = driver_, .device = options_.device, .sockets = *sockets_, .on_lost = [this] {
                 stop_kernels();
             }}));
    gather_ = std::make_unique<CopyEngineGather>(CopyEngineGather::CopyEngineOptions{
        .driver = driver_,
        .device = options_.device,
        .cached_pointers = control_->cached_pointers,
        .is_mapped = [this](DeviceAddress address, std::size_t bytes) {
            return registrations_->has_mapped(address, bytes);
        }});
    for (Rank rank = 0; rank < options_.size; ++rank)
        team_.heaps[at(rank)] = std::bit_cast<abi::Heap*>(heap_->bases()[at(rank)]);
    team_.control = control_.get();
    team_.rank = options_.rank;
    team_.size = options_.size;
    PCCL_ASSIGN_OR_RETURN(const abi::LL128Trial lines, try_ll128(deadline));
    programs_ =
        std::make_unique<DevicePrograms>(DeviceProgramOptions{.driver = driver_,
                                                              .device = options_.device,
                                                              .rank = options_.rank,
                                                              .size = options_.size,
                                                              .gpus = gpus_,
                                                              .preferences = preferences_,
                                                              .ll128 = lines,
                                                              .states = states_.get(),
                                                              .linked_states = linked_states_.get(),
                                                              .linked = linked_});
    return Status::ok();
}

/// Agrees on rank 0's "90 1 128 any all_reduce=ring": the GPU's architecture, preferences, and the
/// list of schedules.
Status DeviceGroupImpl::agree_on_preferences(const DeviceRendezvous& rendezvous) {
    constexpr std::string_view kSubject = "preferences";
    PCCL_ASSIGN_OR_RETURN(const int architecture, driver_.architecture(options_.device));
    PCCL_TRY(check_preferences(options_.preferences));
    std::string published =
        concat(architecture, " ", to_string(options_.preferences), " ", options_.algorithms);
    if (options_.size > 1 && options_.rank == 0) PCCL_TRY(rendezvous.publish(kSubject, published));
    if (options_.size > 1 && options_.rank != 0) {
        PCCL_ASSIGN_OR_RETURN(published, rendezvous.receive(0, kSubject));
    }
    std::string_view rest = published;
    const auto agreed = number_in<int>(next_word(rest), 1, kNewestArchitecture);
    const auto preferences = parse_preferences(rest);
    if (!agreed || !preferences.is_ok())
        return Status::invalid_argument(
            concat("rank 0 published \"", published, "\" for its GPU, which is not readable"));
    gpus_.architecture = *agreed;
    preferences_ = *preferences;
    PCCL_TRY(check_alike(options_.rank, options_.preferences, preferences_));
    algorithms_ = rest.substr(std::min<std::size_t>(1, rest.size()));
    return Status::ok();
}

Status DeviceGroupImpl::allocate_control() {
    PCCL_ASSIGN_OR_RETURN(void* const memory, driver_.allocate_host(sizeof(abi::DeviceControl)));
    control_ = {static_cast<abi::DeviceControl*>(memory),
                [&driver = driver_](void* made) { static_cast<void>(driver.free_host(made)); }};
    log_ = LaunchLog::open({.name = options_.name,
                            .rank = options_.rank,
                            .size = options_.size,
                            .global_ranks = options_.global_ranks},
                           control_);
    return Status::ok();
}

Status DeviceGroupImpl::check_process() const {
    if (!made_in_.is_child()) return Status::ok();
    return Status::unavailable(concat("group ", options_.name,
                                      " of GPUs belongs to the parent of this forked process; CUDA "
                                      "works in processes started by spawn"));
}

Status DeviceGroupImpl::health() const {
    PCCL_TRY(check_process());
    Status why = why_over();
    if (why.is_ok()) return why;
    why = explained(with_doubt(why));
    record_end(why);
    return why;
}

Status DeviceGroupImpl::why_over() const {
    PCCL_TRY(registrations_->health());
    if (!has_given_up()) return Status::ok();
    const Status why = given_up();
    if (control_->fault.rank == options_.rank) {
        end(why);
    } else {
        registrations_->end(why);
    }
    return registrations_->health();
}

Status DeviceGroupImpl::given_up() const {
    const abi::DeviceFault& fault = control_->fault;
    const std::string operation = log_->operation(fault.ticket);
    if (fault.rank == options_.rank) return status_of(fault, operation);
    const bool is_mismatch = fault.phase == abi::DevicePhase::kCall;
    return registrations_->as_reported_by(
        fault.rank, status_of(fault, is_mismatch ? describe_call(fault.ours) : operation));
}

Status DeviceGroupImpl::with_doubt(const Status& why) const {
    const std::uint32_t doubt = std::atomic_ref(control_->in_doubt).load();
    if (doubt == 0) return why;
    return {why.code(),
            concat(why.message(), "; rank ", doubt - 1,
                   " had not let go of this rank's tensors when its kernel ended, and may still "
                   "read and write them"),
            why.peer()};
}

void DeviceGroupImpl::record_end(const Status& why) const {
    if (has_given_up()) log_->end(control_->fault.ticket, given_up());
    if (why.code() == StatusCode::kAborted) return;
    std::call_once(is_recorded_, [&] { runtime::dump_flight_record(why.message()); });
}

bool DeviceGroupImpl::has_given_up() const {
    return std::atomic_ref(control_->has_given_up).load(std::memory_order_acquire) != 0;
}

void DeviceGroupImpl::abort() {
    if (check_process().is_ok()) end(Status::aborted("abort was called"));
}

void DeviceGroupImpl::end(const Status& why) const {
    registrations_->leave(why);
    stop_kernels();
}

void DeviceGroupImpl::stop_kernels() const { std::atomic_ref(control_->abort).store(1); }

bool DeviceGroupImpl::is_captured(kernels::Stream stream) const {
    const auto capture = driver_.capture_of(stream);
    // The query fails for the default stream while another one is being captured.
    return !capture.is_ok() || *capture != 0;
}

Status DeviceGroupImpl::adopt_thread() const {
    PCCL_TRY(use_device());
    return driver_.ignore_captures();
}

Result<std::shared_ptr<DeviceGroupImpl>> create_interruptibly(
    const DeviceGroupImplOptions& options, const std::function<Status()>& interrupted) {
    PCCL_ASSIGN_OR_RETURN(
        auto group,
        run_interruptibly("pccl-gpu-meet", interrupted, [&](const Cancellation& cancellation) {
            return DeviceGroupImpl::create(options, &cancellation);
        }));
    PCCL_TRY(group->use_device());
    return std::shared_ptr<DeviceGroupImpl>(group.release(), LeaveToParent());
}

}  // namespace pccl::device
