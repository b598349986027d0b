// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/host_heap_memory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/memory_file.h"
#include "csrc/sys/sysfs/sysfs.h"

namespace pccl::transport::nvlink {
namespace {

/// Returns the NUMA node of the GPU that reads this memory; -1 where that is unknown.
int numa_of(const HeapMemory::Place& place) {
    const auto ids = place.driver.bus_ids();
    const auto device = static_cast<std::size_t>(place.device);
    if (!ids.is_ok() || device >= ids->size()) return -1;
    return sys::Sysfs().numa_of(ids->at(device));
}

Result<UniqueFd> duplicate(int descriptor) {
    UniqueFd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (copy.is_open()) return copy;
    return Status::from_errno(errno, "cannot duplicate a memory file");
}

/// Checks the size, and that it is final: an access beyond the end would kill the process.
Status check_file(int descriptor, std::size_t bytes) {
    struct stat file {};
    if (::fstat(descriptor, &file) != 0)
        return Status::from_errno(errno, "cannot inspect a peer's memory file");
    const int seals = ::fcntl(descriptor, F_GET_SEALS);
    const bool is_sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
    if (is_sealed && static_cast<std::size_t>(file.st_size) == bytes) return Status::ok();
    return Status::invalid_argument(concat("a peer offered a file of ", file.st_size,
                                           " bytes, not a sealed memory file of ", bytes));
}

}  // namespace

Result<std::shared_ptr<HeapMemory>> HostHeapMemory::create(const Place& place, std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(UniqueFd file, sys::make_memory_file("pccl-gpu-heap", bytes));
    sys::prefer_numa_node(file, bytes, numa_of(place));
    return std::shared_ptr<HeapMemory>(new HostHeapMemory(place, std::move(file), bytes));
}

Result<std::shared_ptr<HeapMemory>> HostHeapMemory::import(const Place& place, int descriptor,
                                                           std::size_t bytes) {
    PCCL_TRY(check_file(descriptor, bytes));
    PCCL_ASSIGN_OR_RETURN(UniqueFd file, duplicate(descriptor));
    return std::shared_ptr<HeapMemory>(new HostHeapMemory(place, std::move(file), bytes));
}

HostHeapMemory::~HostHeapMemory() {
    if (base() != 0) static_cast<void>(place_.driver.unmap_file(mapping_));
}

Result<UniqueFd> HostHeapMemory::descriptor() const { return duplicate(file_.get()); }

Result<sys::cuda::DeviceAddress> HostHeapMemory::map_all() {
    PCCL_ASSIGN_OR_RETURN(mapping_, place_.driver.map_file(file_.get(), bytes()));
    return mapping_.address;
}

}  // namespace pccl::transport::nvlink
