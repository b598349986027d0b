// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/device_group.h"

#include <bit>
#include <utility>
#include <vector>

#include <pccl/device_group.h>
#include "csrc/device/device_memory.h"

namespace pccl {
namespace {

std::vector<device::PeerMessage> internal_messages(std::span<const DeviceMessage> messages) {
    std::vector<device::PeerMessage> all;
    all.reserve(messages.size());
    for (const DeviceMessage& each : messages) all.push_back({each.peer, each.data, each.bytes});
    return all;
}

device::DeviceGroupImplOptions device_options(const DeviceGroupOptions& options) {
    device::DeviceGroupImplOptions internal;
    internal.rank = options.rank;
    internal.size = options.size;
    internal.store = options.store;
    internal.name = options.name;
    internal.device = options.device;
    internal.timeout = options.timeout;
    internal.peer_access = options.peer_access;
    internal.host_kernels = options.host_kernels;
    internal.algorithms = options.algorithms;
    return internal;
}

device::DeviceLaunch launch_within(OptionalTimeout timeout) {
    device::DeviceLaunch launch;
    launch.timeout = timeout;
    return launch;
}

}  // namespace

DeviceMemory::DeviceMemory(std::unique_ptr<device::DeviceMemoryImpl> memory)
    : memory_(std::move(memory)) {}
DeviceMemory::~DeviceMemory() = default;

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::allocate(int device, std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(auto memory, device::DeviceMemoryImpl::allocate(device, bytes));
    return std::unique_ptr<DeviceMemory>(new DeviceMemory(std::move(memory)));
}

std::byte* DeviceMemory::data() const { return std::bit_cast<std::byte*>(memory_->address()); }
std::size_t DeviceMemory::bytes() const { return memory_->bytes(); }
Status DeviceMemory::write(std::span<const std::byte> from) { return memory_->write(from); }
Status DeviceMemory::read(std::span<std::byte> into) { return memory_->read(into); }
Status DeviceMemory::wait() { return memory_->wait(); }

DeviceGroup::DeviceGroup(std::unique_ptr<device::DeviceGroupImpl> group)
    : group_(std::move(group)) {}
DeviceGroup::~DeviceGroup() = default;

Result<std::unique_ptr<DeviceGroup>> DeviceGroup::create(const DeviceGroupOptions& options) {
    PCCL_ASSIGN_OR_RETURN(auto group, device::DeviceGroupImpl::create(device_options(options)));
    return std::unique_ptr<DeviceGroup>(new DeviceGroup(std::move(group)));
}

Rank DeviceGroup::rank() const { return group_->rank(); }
int DeviceGroup::size() const { return group_->size(); }
int DeviceGroup::architecture() const { return group_->architecture(); }
std::size_t DeviceGroup::heap_bytes() const { return group_->heap_bytes(); }

Status DeviceGroup::launch(const Collective& collective, void* stream, OptionalTimeout timeout) {
    return group_->launch(collective, stream, launch_within(timeout));
}

Status DeviceGroup::launch_all(std::span<const Collective> collectives, void* stream,
                               OptionalTimeout timeout) {
    return group_->launch_all(collectives, stream, launch_within(timeout));
}

Status DeviceGroup::exchange(std::span<const DeviceMessage> sends,
                             std::span<const DeviceMessage> receives, void* stream) {
    const auto sent = internal_messages(sends);
    const auto received = internal_messages(receives);
    return group_->exchange({.sends = sent, .receives = received}, stream);
}

Status DeviceGroup::announce(const void* memory) { return group_->announce(memory); }
void DeviceGroup::set_timeout(std::chrono::milliseconds timeout) { group_->set_timeout(timeout); }
Status DeviceGroup::health() const { return group_->health(); }
void DeviceGroup::abort() { group_->abort(); }
bool DeviceGroup::await_launches(Deadline deadline) { return group_->await_launches(deadline); }
bool DeviceGroup::is_captured(void* stream) const { return group_->is_captured(stream); }

}  // namespace pccl
