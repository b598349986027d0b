// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_cuda.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace pccl::fakes {

using sys::cuda::Allocation;
using sys::cuda::DeviceAddress;
using sys::cuda::IpcHandle;
using sys::cuda::MemoryHandle;

namespace {

constexpr std::size_t kPage = 2 * 1024 * 1024;

void* map_shared(int fd, std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/// Maps what nobody has mapped yet.
void* map_once(FakeGpus& gpus, int fd, std::size_t bytes) {
    struct stat file {};
    ::fstat(fd, &file);
    const std::lock_guard lock(gpus.mutex);
    FakeGpus::Mapping& mapping = gpus.mappings[file.st_ino];
    if (mapping.users++ == 0) mapping.place = map_shared(fd, bytes);
    return mapping.place;
}

/// Whether its last user has left.
bool leave_mapping(FakeGpus& gpus, const void* place) {
    const std::lock_guard lock(gpus.mutex);
    for (auto& [inode, mapping] : gpus.mappings)
        if (mapping.place == place && mapping.users > 0) return --mapping.users == 0;
    return true;
}

}  // namespace

FakeCudaDriver::~FakeCudaDriver() {
    for (const auto& [base, allocation] : allocations_) std::free(std::bit_cast<void*>(base));
}

Status FakeCudaDriver::check(const std::string& function) const {
    const std::lock_guard lock(failures_mutex_);
    const auto failure = failures_.find(function);
    return failure == failures_.end() ? Status::ok() : failure->second;
}

DeviceAddress FakeCudaDriver::allocate(std::size_t bytes) {
    const auto base = std::bit_cast<DeviceAddress>(std::calloc(1, bytes));
    const std::scoped_lock lock(gpus_->mutex, mutex_);
    allocations_[base] = {.base = base, .bytes = bytes, .id = ++gpus_->last_id, .device = 0};
    return base;
}

void FakeCudaDriver::forget(DeviceAddress base) {
    const std::scoped_lock lock(gpus_->mutex, mutex_);
    Allocation& allocation = allocations_.at(base);
    gpus_->allocations.erase(allocation.id);
    allocation.id = ++gpus_->last_id;
}

Status FakeCudaDriver::use(int device) {
    PCCL_TRY(check("use"));
    if (device < 0 || device >= gpus_->count) return Status::invalid_argument("no such device");
    return Status::ok();
}

Result<std::vector<std::string>> FakeCudaDriver::bus_ids() {
    PCCL_TRY(check("bus_ids"));
    std::vector<std::string> ids;
    for (int device = 0; device < gpus_->count; ++device)
        ids.push_back("0000:0" + std::to_string(device) + ":00.0");
    return ids;
}

Result<std::size_t> FakeCudaDriver::granularity(int) { return kPage; }

Result<MemoryHandle> FakeCudaDriver::create(int, std::size_t bytes) {
    PCCL_TRY(check("create"));
    UniqueFd memory(::memfd_create("fake-gpu", MFD_CLOEXEC));
    if (bytes % kPage != 0) return Status::invalid_argument("not a multiple of the granularity");
    if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
        return Status::from_errno(errno, "cannot size fake memory");
    const std::scoped_lock lock(gpus_->mutex, mutex_);
    const MemoryHandle handle{++gpus_->last_id};
    memories_[handle.value] = std::move(memory);
    return handle;
}

Result<UniqueFd> FakeCudaDriver::export_memory(MemoryHandle memory) {
    PCCL_TRY(check("export_memory"));
    const std::lock_guard lock(mutex_);
    return UniqueFd(::dup(memories_.at(memory.value).get()));
}

Result<MemoryHandle> FakeCudaDriver::import_memory(int fd) {
    PCCL_TRY(check("import_memory"));
    const std::scoped_lock lock(gpus_->mutex, mutex_);
    const MemoryHandle handle{++gpus_->last_id};
    memories_[handle.value] = UniqueFd(::dup(fd));
    return handle;
}

Status FakeCudaDriver::release(MemoryHandle memory) {
    const std::lock_guard lock(mutex_);
    return memories_.erase(memory.value) == 1 ? Status::ok()
                                              : Status::invalid_argument("released twice");
}

Result<DeviceAddress> FakeCudaDriver::map(MemoryHandle memory, std::size_t bytes, int) {
    PCCL_TRY(check("map"));
    const std::lock_guard lock(mutex_);
    const int fd = memories_.at(memory.value).get();
    void* const place =
        gpus_->has_one_address_space ? map_once(*gpus_, fd, bytes) : map_shared(fd, bytes);
    if (place == MAP_FAILED) return Status::from_errno(errno, "cannot map fake memory");
    const auto address = std::bit_cast<DeviceAddress>(place);
    mappings_[address] = bytes;
    return address;
}

Status FakeCudaDriver::unmap(DeviceAddress address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = mappings_.find(address);
    if (found == mappings_.end() || found->second != bytes)
        return Status::invalid_argument("no such mapping");
    mappings_.erase(found);
    auto* const place = std::bit_cast<void*>(address);
    if (leave_mapping(*gpus_, place)) ::munmap(place, bytes);
    return Status::ok();
}

Result<Allocation> FakeCudaDriver::allocation_of(DeviceAddress address) {
    const std::lock_guard lock(mutex_);
    auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return Status::invalid_argument("no GPU memory");
    const Allocation& allocation = (--after)->second;
    if (address - allocation.base >= allocation.bytes)
        return Status::invalid_argument("no GPU memory");
    return allocation;
}

Result<int> FakeCudaDriver::device_of(DeviceAddress address) {
    PCCL_ASSIGN_OR_RETURN(const Allocation allocation, allocation_of(address));
    return allocation.device;
}

Result<std::uint64_t> FakeCudaDriver::allocation_id_of(DeviceAddress address) {
    PCCL_ASSIGN_OR_RETURN(const Allocation allocation, allocation_of(address));
    return allocation.id;
}

Result<DeviceAddress> FakeCudaDriver::allocate(int, std::size_t bytes) {
    PCCL_TRY(check("allocate"));
    return allocate(bytes);
}

Status FakeCudaDriver::deallocate(DeviceAddress base) {
    const std::lock_guard lock(mutex_);
    if (allocations_.erase(base) == 0) return Status::invalid_argument("no such allocation");
    std::free(std::bit_cast<void*>(base));
    return Status::ok();
}

Result<IpcHandle> FakeCudaDriver::export_allocation(DeviceAddress base) {
    PCCL_TRY(check("export_allocation"));
    const std::scoped_lock lock(gpus_->mutex, mutex_);
    const Allocation& allocation = allocations_.at(base);
    if (unshareable_.contains(base)) return Status::unsupported("mapped piece by piece");
    gpus_->allocations[allocation.id] = allocation;
    IpcHandle handle{};
    std::memcpy(handle.data(), &allocation.id, sizeof allocation.id);
    return handle;
}

Result<DeviceAddress> FakeCudaDriver::open_allocation(const IpcHandle& handle) {
    PCCL_TRY(check("open_allocation"));
    std::uint64_t id = 0;
    std::memcpy(&id, handle.data(), sizeof id);
    const std::scoped_lock lock(gpus_->mutex, mutex_);
    const auto found = gpus_->allocations.find(id);
    if (found == gpus_->allocations.end()) return Status::invalid_argument("no such handle");
    ++opened_;
    return found->second.base;
}

Status FakeCudaDriver::close_allocation(DeviceAddress) {
    const std::lock_guard lock(mutex_);
    --opened_;
    return Status::ok();
}

Result<sys::cuda::DmaBuf> FakeCudaDriver::export_range(int, DeviceAddress, std::size_t) {
    PCCL_TRY(check("export_range"));
    return Status::unsupported("memory that is in no file");
}

bool FakeCudaDriver::reaches(int device, int other) {
    const std::lock_guard lock(mutex_);
    return reached_.contains({device, other});
}

Status FakeCudaDriver::reach(int device, int other) {
    PCCL_TRY(check("reach"));
    const std::lock_guard lock(mutex_);
    reached_.emplace(device, other);
    return Status::ok();
}

Result<void*> FakeCudaDriver::allocate_host(std::size_t bytes) {
    void* const memory = std::calloc(1, bytes);
    const std::lock_guard lock(mutex_);
    host_memory_ = memory;
    return memory;
}

Status FakeCudaDriver::free_host(void* memory) {
    std::free(memory);
    return Status::ok();
}

Result<sys::cuda::HostMapping> FakeCudaDriver::map_file(int file, std::size_t bytes) {
    PCCL_TRY(check("map_file"));
    void* const place =
        gpus_->has_one_address_space ? map_once(*gpus_, file, bytes) : map_shared(file, bytes);
    if (place == MAP_FAILED) return Status::from_errno(errno, "cannot map a file");
    ++open_files_;
    return sys::cuda::HostMapping{static_cast<std::byte*>(place),
                                  std::bit_cast<DeviceAddress>(place), bytes};
}

Status FakeCudaDriver::unmap_file(const sys::cuda::HostMapping& mapping) {
    --open_files_;
    if (leave_mapping(*gpus_, mapping.memory)) ::munmap(mapping.memory, mapping.bytes);
    return Status::ok();
}

Result<bool> FakeCudaDriver::can_reach(int device, int other) {
    PCCL_TRY(check("can_reach"));
    if (is_in_pairs_) return device / 2 == other / 2;
    return device == other || !is_alone_;
}

Result<bool> FakeCudaDriver::has_nvlink(int device, int other) {
    PCCL_TRY(check("has_nvlink"));
    return device == other || has_nvlinks_;
}

Status FakeCudaDriver::clear(DeviceAddress address, std::size_t bytes) {
    auto* const memory = std::bit_cast<void*>(address);
    // A mapping gives its pages back, and has new ones only where somebody touches them.
    if (bytes % kPage != 0 || ::madvise(memory, bytes, MADV_REMOVE) != 0)
        std::memset(memory, 0, bytes);
    return Status::ok();
}

Result<sys::cuda::Stream> FakeCudaDriver::create_stream(int) {
    PCCL_TRY(check("create_stream"));
    const std::lock_guard lock(mutex_);
    ++streams_;
    return static_cast<sys::cuda::Stream>(&streams_);
}

Status FakeCudaDriver::destroy_stream(sys::cuda::Stream) {
    const std::lock_guard lock(mutex_);
    --streams_;
    return Status::ok();
}

Status FakeCudaDriver::copy(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                            sys::cuda::Stream) {
    if (before_copy_) before_copy_();
    std::memmove(std::bit_cast<void*>(to), std::bit_cast<const void*>(from), bytes);
    return Status::ok();
}

Status FakeCudaDriver::copy_all(std::span<const sys::cuda::Copy> copies, sys::cuda::Stream stream) {
    for (const sys::cuda::Copy& each : copies)
        PCCL_TRY(copy(each.to, each.from, each.bytes, stream));
    return Status::ok();
}

}  // namespace pccl::fakes
