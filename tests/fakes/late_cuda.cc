// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/late_cuda.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace pccl::fakes {

using sys::cuda::Allocation;
using sys::cuda::Copy;
using sys::cuda::DeviceAddress;
using sys::cuda::Event;
using sys::cuda::IpcHandle;
using sys::cuda::Stream;

namespace {

/// What a handle says.
struct Shared {
    transport::ProcessFile file{};
    std::size_t bytes = 0;
};
static_assert(sizeof(Shared) <= sizeof(IpcHandle));

/// As an engine does it, whose accesses are nobody's races.
[[gnu::no_sanitize_thread]] void copy_bytes(const Copy& copy) {
    auto* const to = std::bit_cast<volatile std::byte*>(copy.to);
    const auto* const from = std::bit_cast<const volatile std::byte*>(copy.from);
    for (std::size_t i = 0; i < copy.bytes; ++i) to[i] = from[i];
}

std::uint64_t number_of(Event event) { return std::bit_cast<std::uint64_t>(event); }

}  // namespace

void LateCudaDriver::adopt(const transport::Mapping& memory, int device) {
    const auto base = std::bit_cast<DeviceAddress>(memory.memory().data());
    const std::size_t bytes = memory.memory().size();
    const std::lock_guard lock(mutex_);
    std::erase_if(adopted_, [&](const auto& each) {
        const Allocation& old = each.second.allocation;
        return old.base < base + bytes && base < old.base + old.bytes;
    });
    adopted_[base] = {{.base = base, .bytes = bytes, .id = ++last_, .device = device},
                      memory.file()};
}

void LateCudaDriver::be_late(int looks) {
    const std::lock_guard lock(mutex_);
    looks_ = looks;
}

void LateCudaDriver::come_at_once() {
    const std::lock_guard lock(mutex_);
    for (auto& [number, part] : parts_) hasten(*part);
}

void LateCudaDriver::fail_copies(Status status) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(status);
}

std::size_t LateCudaDriver::opened() const {
    const std::lock_guard lock(mutex_);
    return opened_.size();
}

std::size_t LateCudaDriver::most_at_once() const {
    const std::lock_guard lock(mutex_);
    return most_at_once_;
}

std::size_t LateCudaDriver::calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
}

bool LateCudaDriver::is_busy(std::span<const std::byte> memory) const {
    const auto begin = std::bit_cast<DeviceAddress>(memory.data());
    const auto is_in = [&](DeviceAddress at) { return at - begin < memory.size(); };
    const auto touches = [&](const Copy& copy) { return is_in(copy.to) || is_in(copy.from); };
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(parts_, [&](const auto& each) {
        return !each.second->is_done && std::ranges::any_of(each.second->copies, touches);
    });
}

Result<Allocation> LateCudaDriver::allocation_of(DeviceAddress address) {
    const std::lock_guard lock(mutex_);
    const auto after = adopted_.upper_bound(address);
    if (after == adopted_.begin()) return Status::invalid_argument("no GPU memory");
    const Allocation& allocation = std::prev(after)->second.allocation;
    if (address - allocation.base >= allocation.bytes)
        return Status::invalid_argument("no GPU memory");
    return allocation;
}

Result<IpcHandle> LateCudaDriver::export_allocation(DeviceAddress base) {
    const std::lock_guard lock(mutex_);
    const Adopted& memory = adopted_.at(base);
    if (memory.file < 0) return Status::unsupported("mapped piece by piece");
    Shared shared{.bytes = memory.allocation.bytes};
    PCCL_ASSIGN_OR_RETURN(shared.file, transport::describe_file(memory.file));
    IpcHandle handle{};
    std::memcpy(handle.data(), &shared, sizeof shared);
    return handle;
}

Result<DeviceAddress> LateCudaDriver::open_allocation(const IpcHandle& handle) {
    Shared shared;
    std::memcpy(&shared, handle.data(), sizeof shared);
    PCCL_ASSIGN_OR_RETURN(auto mapping, transport::Mapping::of_process(
                                            shared.file, {.offset = 0, .bytes = shared.bytes}));
    const auto base = std::bit_cast<DeviceAddress>(mapping.memory().data());
    const std::lock_guard lock(mutex_);
    opened_.emplace(base, std::move(mapping));
    return base;
}

Status LateCudaDriver::close_allocation(DeviceAddress base) {
    const std::lock_guard lock(mutex_);
    return opened_.erase(base) == 1 ? Status::ok() : Status::invalid_argument("closed twice");
}

Result<sys::cuda::DmaBuf> LateCudaDriver::export_range(int device, DeviceAddress address,
                                                       std::size_t bytes) {
    PCCL_TRY(check("export_range"));
    PCCL_ASSIGN_OR_RETURN(const Allocation allocation, allocation_of(address));
    const DeviceAddress offset = address - allocation.base;
    if (allocation.device != device || bytes > allocation.bytes - offset)
        return Status::invalid_argument("a range of several allocations");
    const std::lock_guard lock(mutex_);
    const int file = adopted_.at(allocation.base).file;
    if (file < 0) return Status::unsupported("memory that is in no file");
    return sys::cuda::DmaBuf{.file = UniqueFd(::fcntl(file, F_DUPFD_CLOEXEC, 0)), .offset = offset};
}

Result<Stream> LateCudaDriver::create_stream(int) {
    const std::lock_guard lock(mutex_);
    return std::bit_cast<Stream>(++last_);
}

Status LateCudaDriver::destroy_stream(Stream stream) {
    const std::lock_guard lock(mutex_);
    begun_.erase(stream);
    return Status::ok();
}

Status LateCudaDriver::copy_all(std::span<const Copy> copies, Stream stream) {
    const std::lock_guard lock(mutex_);
    ++calls_;
    most_at_once_ = std::max(most_at_once_, copies.size());
    auto& begun = begun_[stream].copies;
    begun.insert(begun.end(), copies.begin(), copies.end());
    return Status::ok();
}

Result<Event> LateCudaDriver::record(Stream stream) {
    const std::lock_guard lock(mutex_);
    auto part = std::make_shared<Part>(std::exchange(begun_[stream], {}));
    part->looks = looks_;
    part->status = failure_;
    begun_[stream].after = {part};
    parts_[++last_] = std::move(part);
    return std::bit_cast<Event>(last_);
}

Status LateCudaDriver::await_event(Stream then, Event event) {
    const std::lock_guard lock(mutex_);
    begun_[then].after.push_back(parts_.at(number_of(event)));
    return Status::ok();
}

Result<bool> LateCudaDriver::has_come(Event event) {
    const std::lock_guard lock(mutex_);
    Part& part = *parts_.at(number_of(event));
    if (!has_come(part)) return false;
    finish(part);
    if (!part.status.is_ok()) return part.status;
    return true;
}

void LateCudaDriver::hasten(Part& part) {
    part.looks = 0;
    for (const PartPtr& each : part.after) hasten(*each);
}

bool LateCudaDriver::has_come(Part& part) {
    if (part.is_done) return true;
    if (!std::ranges::all_of(part.after, [](const PartPtr& each) { return has_come(*each); }))
        return false;
    return part.looks-- <= 0;
}

/// And what it comes after.
void LateCudaDriver::finish(Part& part) {
    if (std::exchange(part.is_done, true)) return;
    for (const PartPtr& each : std::exchange(part.after, {})) finish(*each);
    if (part.status.is_ok()) std::ranges::for_each(part.copies, &copy_bytes);
}

Status LateCudaDriver::destroy_event(Event event) {
    const std::lock_guard lock(mutex_);
    parts_.erase(number_of(event));
    return Status::ok();
}

}  // namespace pccl::fakes
