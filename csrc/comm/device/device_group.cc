#include "csrc/comm/device/device_group.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/comm/roster.h"

namespace pccl::comm {
namespace {

using sys::cuda::DeviceAddress;

std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

std::string address_key(Rank rank) { return concat("pccl/gpu/", rank); }

Status status_of(const abi::DeviceFault& fault) {
    const std::string what =
        concat("rank ", fault.rank, " waited for rank ", fault.peer, " (block ", fault.block,
               ", launch ", fault.expected, ", seen ", fault.seen, ")");
    if (fault.phase == abi::DevicePhase::kLength)
        return Status::mismatch(
            fault.peer, concat("rank ", fault.rank, " sends ", fault.expected, " bytes, but rank ",
                               fault.peer, " expects ", fault.seen));
    if (fault.is_abort != 0) return Status::aborted(what);
    return Status::timeout(what, fault.peer);
}

}  // namespace

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
    : options_(options),
      driver_(driver),
      collectives_(driver, options.device),
      sends_(driver, options.device),
      receives_(driver, options.device) {}

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

Status DeviceGroup::health() const {
    if (registrations_ != nullptr) PCCL_TRY(registrations_->health());
    const std::atomic_ref is_set(control_->fault.is_set);
    if (is_set.load(std::memory_order_acquire) != 0) return status_of(control_->fault);
    if (std::atomic_ref(control_->abort).load() != 0) return Status::aborted("abort was called");
    return Status::ok();
}

void DeviceGroup::abort() { std::atomic_ref(control_->abort).store(1); }

}  // namespace pccl::comm
