#include "csrc/comm/device/device_group.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/comm/roster.h"
#include "csrc/kernels/all_gather.h"
#include "csrc/kernels/all_reduce.h"
#include "csrc/kernels/all_to_all.h"
#include "csrc/kernels/broadcast.h"
#include "csrc/kernels/reduce_scatter.h"

namespace pccl::comm {
namespace {

using sys::cuda::DeviceAddress;

std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

std::string address_key(Rank rank) { return concat("pccl/gpu/", rank); }

DeviceAddress address_of(const void* pointer) { return std::bit_cast<DeviceAddress>(pointer); }

/// How many blocks one side of a collective holds.
int blocks_in(CollectiveKind kind, int ranks) {
    return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllToAll ? ranks : 1;
}
int blocks_out(CollectiveKind kind, int ranks) {
    return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kAllToAll ? ranks : 1;
}

bool is_reduction(CollectiveKind kind) {
    return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

bool is_known(CollectiveKind kind) {
    return is_reduction(kind) || kind == CollectiveKind::kAllGather ||
           kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kBroadcast;
}

Status launch_kernel_of(CollectiveKind kind, const kernels::Launch& launch,
                        kernels::Stream stream) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return kernels::launch_all_reduce(launch, stream);
        case CollectiveKind::kReduceScatter:
            return kernels::launch_reduce_scatter(launch, stream);
        case CollectiveKind::kAllGather:
            return kernels::launch_all_gather(launch, stream);
        case CollectiveKind::kAllToAll:
            return kernels::launch_all_to_all(launch, stream);
        default:
            return kernels::launch_broadcast(launch, stream);
    }
}

Status status_of(const abi::DeviceFault& fault) {
    const std::string what =
        concat("rank ", fault.rank, " waited for rank ", fault.peer, " (block ", fault.block,
               ", launch ", fault.expected, ", seen ", fault.seen, ")");
    if (fault.is_abort != 0) return Status::aborted(what);
    return Status::timeout(what, fault.peer);
}

}  // namespace

kernels::Plan plan_collective(CollectiveKind kind, std::size_t bytes, int ranks) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return kernels::plan_all_reduce(bytes, ranks);
        case CollectiveKind::kReduceScatter:
            return kernels::plan_reduce_scatter(bytes, ranks);
        case CollectiveKind::kAllGather:
            return kernels::plan_all_gather(bytes, ranks);
        case CollectiveKind::kAllToAll:
            return kernels::plan_all_to_all(bytes, ranks);
        default:
            return kernels::plan_broadcast(bytes, ranks);
    }
}

Result<std::unique_ptr<DeviceGroup>> DeviceGroup::create(const DeviceGroupOptions& options) {
    if (options.size < 1 || options.size > abi::kMostDevices)
        return Status::unsupported(concat("a group of ", options.size, " GPUs on one host; 1 to ",
                                          abi::kMostDevices, " work"));
    if (options.rank < 0 || options.rank >= options.size)
        return Status::invalid_argument(
            concat("rank ", options.rank, " is not in a group of ", options.size));
    sys::cuda::Driver* driver = options.driver;
    if (driver == nullptr) {
        PCCL_ASSIGN_OR_RETURN(driver, sys::cuda::process_driver());
    }
    PCCL_TRY(driver->use(options.device));
    std::unique_ptr<DeviceGroup> group(new DeviceGroup(options, *driver));
    const Status met = group->meet(Deadline::after(options.timeout));
    if (!met.is_ok())
        return met.with_context(concat("rank ", options.rank, " cannot share its GPU"));
    return group;
}

DeviceGroup::DeviceGroup(const DeviceGroupOptions& options, sys::cuda::Driver& driver)
    : options_(options), driver_(driver) {}

DeviceGroup::~DeviceGroup() {
    registrations_.reset();
    heap_.reset();
    if (control_ != nullptr) static_cast<void>(driver_.free_host(control_));
}

Status DeviceGroup::meet(Deadline deadline) {
    PCCL_TRY(connect(deadline));
    PCCL_ASSIGN_OR_RETURN(
        heap_, transport::nvlink::SymmetricHeap::create(
                   {.driver = driver_, .device = options_.device, .bytes = sizeof(abi::Heap)},
                   *sockets_, deadline));
    PCCL_TRY(allocate_control());
    PCCL_ASSIGN_OR_RETURN(
        registrations_,
        transport::nvlink::RegistrationCache::create(
            {.driver = driver_, .device = options_.device, .sockets = *sockets_, .on_lost = [this] {
                 abort();
             }}));
    for (Rank rank = 0; rank < options_.size; ++rank)
        team_.heaps[index(rank)] = std::bit_cast<abi::Heap*>(heap_->bases()[index(rank)]);
    team_.control = control_;
    team_.timeout_ns =
        static_cast<std::uint64_t>(std::chrono::nanoseconds(options_.timeout).count());
    team_.rank = options_.rank;
    team_.size = options_.size;
    return Status::ok();
}

Status DeviceGroup::connect(Deadline deadline) {
    transport::nvlink::PeerSocketsOptions own{.rank = options_.rank, .size = options_.size};
    if (options_.size > 1) {
        const Meeting meeting{.size = options_.size, .deadline = deadline};
        PCCL_ASSIGN_OR_RETURN(const GroupIdentity identity,
                              agree_on_identity(*options_.store, options_.rank, meeting));
        own.group = identity.group;
        own.secret = identity.secret;
    }
    PCCL_ASSIGN_OR_RETURN(sockets_, transport::nvlink::PeerSockets::listen(own));
    if (options_.size == 1) return Status::ok();
    PCCL_TRY(options_.store->set(address_key(options_.rank), sockets_->address()));
    std::vector<std::string> addresses(index(options_.size));
    for (Rank peer = 0; peer < options_.rank; ++peer) {
        PCCL_ASSIGN_OR_RETURN(addresses[index(peer)],
                              options_.store->get(address_key(peer), deadline));
    }
    return sockets_->connect(addresses, deadline);
}

Status DeviceGroup::allocate_control() {
    PCCL_ASSIGN_OR_RETURN(void* const memory, driver_.allocate_host(sizeof(abi::DeviceControl)));
    control_ = static_cast<abi::DeviceControl*>(memory);
    return Status::ok();
}

Status DeviceGroup::check(const DeviceCollective& collective) const {
    if (!is_known(collective.kind))
        return Status::unsupported(
            concat("no device kernel for ", schedule::to_string(collective.kind)));
    if (is_reduction(collective.kind))
        PCCL_TRY(kernels::check_reduction(collective.type, collective.op));
    if (collective.root < 0 || collective.root >= options_.size)
        return Status::invalid_argument(
            concat("root ", collective.root, " is not in a group of ", options_.size));
    const bool has_memory = collective.input != nullptr && collective.output != nullptr;
    if (collective.count > 0 && !has_memory)
        return Status::invalid_argument("a collective without memory");
    return Status::ok();
}

Status DeviceGroup::launch(const DeviceCollective& collective, kernels::Stream stream) {
    PCCL_TRY(check(collective));
    if (collective.count == 0) return Status::ok();
    if (options_.size == 1) return copy_alone(collective, stream);
    const std::lock_guard lock(mutex_);
    PCCL_TRY(health());
    const std::size_t bytes = collective.count * size_of(collective.type);
    kernels::Launch launch{
        .team = team_,
        .input = static_cast<const std::byte*>(collective.input),
        .output = static_cast<std::byte*>(collective.output),
        .count = collective.count,
        .type = collective.type,
        .op = collective.op,
        .root = collective.root,
        .plan = collective.plan.value_or(plan_collective(collective.kind, bytes, options_.size))};
    PCCL_TRY(kernels::check_plan(launch.plan, bytes));
    if (launch.plan.protocol != kernels::Protocol::kWords) {
        PCCL_ASSIGN_OR_RETURN(launch.postings, post(collective, bytes));
    }
    PCCL_TRY(follow_last(stream));
    return launch_kernel_of(collective.kind, launch, stream);
}

Status DeviceGroup::follow_last(kernels::Stream stream) {
    const auto last = std::exchange(last_stream_, stream);
    if (!last || *last == stream) return Status::ok();
    return driver_.follow(stream, *last);
}

Status DeviceGroup::copy_alone(const DeviceCollective& collective, kernels::Stream stream) {
    if (collective.input == collective.output) return Status::ok();
    return driver_.copy(address_of(collective.output), address_of(collective.input),
                        collective.count * size_of(collective.type), stream);
}

Result<abi::Postings> DeviceGroup::post(const DeviceCollective& collective, std::size_t bytes) {
    const Deadline deadline = Deadline::after(options_.timeout);
    const auto whole = [&](int blocks) { return bytes * static_cast<std::size_t>(blocks); };
    PCCL_ASSIGN_OR_RETURN(
        const auto inputs,
        registrations_->find(address_of(collective.input),
                             whole(blocks_in(collective.kind, options_.size)), deadline));
    PCCL_ASSIGN_OR_RETURN(
        auto outputs,
        registrations_->find(address_of(collective.output),
                             whole(blocks_out(collective.kind, options_.size)), deadline));
    // Of a gathering output, rank r is to store into block r.
    const std::size_t step = blocks_out(collective.kind, options_.size) == 1 ? 0 : bytes;
    for (Rank rank = 0; rank < options_.size; ++rank) outputs[index(rank)] += index(rank) * step;
    abi::Postings postings{};
    std::copy(inputs.begin(), inputs.end(), postings.inputs);
    std::copy(outputs.begin(), outputs.end(), postings.outputs);
    return postings;
}

Status DeviceGroup::health() const {
    if (registrations_ != nullptr) PCCL_TRY(registrations_->health());
    const std::atomic_ref is_set(control_->fault.is_set);
    if (is_set.load(std::memory_order_acquire) != 0) return status_of(control_->fault);
    if (std::atomic_ref(control_->abort).load() != 0) return Status::aborted("abort was called");
    return Status::ok();
}

void DeviceGroup::abort() { std::atomic_ref(control_->abort).store(1); }

}  // namespace pccl::comm
