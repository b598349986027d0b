// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "csrc/base/config.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/memory_file.h"
#include "csrc/transport/mapping.h"

namespace pccl::transport::shm {
namespace {

constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kSmallest = 16 * kKiB;
// A message between hosts takes some 10 us before its bytes: at 10 GB/s 64 KiB take as long.
constexpr std::size_t kSmallestBesideOtherHosts = 64 * kKiB;
// A line should have left its reader's own caches, of 1 to 2 MiB on servers, before it is written
// again.
constexpr std::size_t kLargest = 2 * kMiB;
constexpr std::size_t kMostConfigured = 1024 * kMiB;
constexpr std::size_t kHostBudget = 16 * kMiB;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
static_assert(sizeof(RingCounters) * kChannels <= kHeaderBytes);

std::size_t file_bytes(std::size_t ring) { return kHeaderBytes + kChannels * ring; }

}  // namespace

std::size_t ring_bytes(int host_ranks, int group_size) {
    const std::size_t configured = process_config().shm_ring_bytes;
    const auto all = static_cast<std::size_t>(std::max(1, host_ranks));
    const std::size_t pairs = std::max<std::size_t>(1, all * (all - 1));
    const std::size_t least = group_size > host_ranks ? kSmallestBesideOtherHosts : kSmallest;
    if (configured != 0) return std::bit_floor(std::max(configured, kSmallest));
    return std::bit_floor(std::max(std::min(kHostBudget / pairs, kLargest), least));
}

Result<std::unique_ptr<RingFile>> RingFile::create(std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(UniqueFd memfd, sys::make_memory_file("pccl-ring", file_bytes(bytes)));
    std::unique_ptr<RingFile> file(new RingFile(std::move(memfd), bytes));
    PCCL_TRY(file->map_all());
    return file;
}

Result<std::unique_ptr<RingFile>> RingFile::map(UniqueFd memfd) {
    struct stat info {};
    if (::fstat(memfd.get(), &info) != 0) return Status::from_errno(errno, "cannot examine a ring");
    const bool sealed = (::fcntl(memfd.get(), F_GET_SEALS) & kSeals) == kSeals;
    const auto size = static_cast<std::size_t>(info.st_size);
    const std::size_t bytes = std::bit_floor(size / kChannels);
    if (!sealed || bytes < kSmallest || bytes > kMostConfigured || size != file_bytes(bytes))
        return Status::invalid_argument(concat("a peer offered a ring file of ", info.st_size,
                                               " bytes, sealed ", sealed,
                                               "; expected a sealed one with ", kChannels,
                                               " rings of 16 KiB to 1 GiB, a power "
                                               "of two"));
    std::unique_ptr<RingFile> file(new RingFile(std::move(memfd), bytes));
    PCCL_TRY(file->map_all());
    return file;
}

Status RingFile::map_all() {
    void* const header =
        ::mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_.get(), 0);
    if (header == MAP_FAILED) return Status::from_errno(errno, "cannot map a shared-memory ring");
    counters_ = static_cast<RingCounters*>(header);
    for (std::size_t i = 0; i < data_.size(); ++i) {
        PCCL_ASSIGN_OR_RETURN(
            data_[i],
            map_twice(memfd_.get(), {.offset = kHeaderBytes + i * bytes_, .bytes = bytes_}));
    }
    return Status::ok();
}

RingFile::~RingFile() {
    if (counters_ != nullptr) ::munmap(counters_, kHeaderBytes);
    for (std::byte* data : data_)
        if (data != nullptr) ::munmap(data, 2 * bytes_);
}

}  // namespace pccl::transport::shm
