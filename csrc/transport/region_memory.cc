// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/region_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "csrc/base/assert.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/memory_file.h"

namespace pccl::transport {
namespace {

constexpr int kRegionSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::size_t kPage = 4096;

struct flock lock_on(const RegionExtent& extent, short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(extent.offset);
    lock.l_len = static_cast<off_t>(extent.bytes);
    return lock;
}

bool lock_range(int file, const RegionExtent& extent, short type) {
    struct flock lock = lock_on(extent, type);
    return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

/// Returns the end of a range that conflicts.
std::optional<std::uint64_t> end_of_conflict(int file, const RegionExtent& extent) {
    struct flock lock = lock_on(extent, F_WRLCK);
    if (::fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
    return static_cast<std::uint64_t>(lock.l_start + lock.l_len);
}

/// Returns half of a region, rounded down to whole pages: regions follow each other in a file.
std::size_t half_of(std::size_t bytes) { return bytes / kPage / 2 * kPage; }

/// Opens the file again, with an open file description of its own: locks belong to descriptions.
UniqueFd reopen(int file) {
    return UniqueFd(::open(concat("/proc/self/fd/", file).c_str(), O_RDWR | O_CLOEXEC));
}

Result<ino_t> inode_of(int file) {
    struct stat info {};
    if (::fstat(file, &info) != 0) return Status::from_errno(errno, "cannot examine a region");
    const bool sealed = (::fcntl(file, F_GET_SEALS) & kRegionSeals) == kRegionSeals;
    if (sealed && info.st_size == static_cast<off_t>(RegionMemory::kFileBytes)) return info.st_ino;
    return Status::invalid_argument(concat("a peer offered memory of ", info.st_size,
                                           " bytes, sealed ", sealed, "; expected a sealed one of ",
                                           RegionMemory::kFileBytes));
}

}  // namespace

Result<std::unique_ptr<RegionMemory>> RegionMemory::in_new_file(std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(UniqueFd file, sys::make_memory_file("pccl-region", kFileBytes));
    PCCL_ASSIGN_OR_RETURN(auto memory, claim_in(std::move(file), bytes));
    PCCL_ASSERT(memory != nullptr);
    return memory;
}

Result<std::unique_ptr<RegionMemory>> RegionMemory::in_file_of(const RegionMemory& other,
                                                               std::size_t bytes) {
    UniqueFd file = reopen(other.file());
    if (!file.is_open()) return std::unique_ptr<RegionMemory>();
    return claim_in(std::move(file), bytes);
}

Result<std::unique_ptr<RegionMemory>> RegionMemory::claim_in(UniqueFd file, std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(const ino_t inode, inode_of(file.get()));
    std::unique_ptr<RegionMemory> memory(new RegionMemory(std::move(file), inode));
    PCCL_ASSIGN_OR_RETURN(const bool claimed, memory->claim(bytes));
    if (!claimed) return std::unique_ptr<RegionMemory>();
    PCCL_TRY(memory->map());
    return memory;
}

Result<bool> RegionMemory::claim(std::size_t bytes) {
    RegionExtent extent{.offset = 0, .bytes = bytes};
    while (extent.offset + bytes <= kFileBytes) {
        if (lock_range(file_.get(), extent, F_WRLCK)) {
            extent_ = extent;
            if (!give_back_pages()) return Status::from_errno(errno, "cannot clear a region");
            // From now on others may hold the lock as well.
            if (lock_range(file_.get(), extent, F_RDLCK)) return true;
            return Status::from_errno(errno, "cannot share the lock of a region");
        }
        if (errno != EAGAIN && errno != EACCES)
            return Status::from_errno(errno, "cannot lock a region");
        extent.offset = end_of_conflict(file_.get(), extent).value_or(extent.offset);
    }
    return false;
}

Result<std::unique_ptr<RegionMemory>> RegionMemory::join(UniqueFd file,
                                                         const RegionExtent& extent) {
    PCCL_ASSIGN_OR_RETURN(const ino_t inode, inode_of(file.get()));
    if (extent.bytes == 0 || extent.bytes > kFileBytes ||
        extent.offset > kFileBytes - extent.bytes || extent.offset % kPage != 0)
        return Status::invalid_argument(concat("a peer offered ", extent.bytes, " bytes at ",
                                               extent.offset, " of a file of ", kFileBytes));
    // Without /proc the peer's descriptor and this one share the lock: it then ends when both are
    // closed.
    if (UniqueFd own = reopen(file.get()); own.is_open()) file = std::move(own);
    std::unique_ptr<RegionMemory> memory(new RegionMemory(std::move(file), inode));
    memory->extent_ = extent;
    if (!lock_range(memory->file(), extent, F_RDLCK))
        return Status::from_errno(errno, "cannot lock a region that a peer offered");
    PCCL_TRY(memory->map());
    return memory;
}

Status RegionMemory::map() {
    void* const memory =
        ::mmap(nullptr, extent_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
               file_.get(), static_cast<off_t>(extent_.offset));
    if (memory == MAP_FAILED) return Status::from_errno(errno, "cannot map a region");
    memory_ = {static_cast<std::byte*>(memory), extent_.bytes};
    return Status::ok();
}

RegionMemory::~RegionMemory() {
    if (memory_.empty()) return;
    ::munmap(memory_.data(), memory_.size());
    if (lock_range(file_.get(), extent_, F_WRLCK)) static_cast<void>(give_back_pages());
}

bool RegionMemory::give_back_pages() const {
    return ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       static_cast<off_t>(extent_.offset), static_cast<off_t>(extent_.bytes)) == 0;
}

Result<std::shared_ptr<RegionMemory>> RegionStock::claim(std::size_t wanted, std::size_t least) {
    const auto files = one_of_each_file();
    for (std::size_t bytes = wanted; bytes >= least; bytes = half_of(bytes)) {
        for (const auto& other : files) {
            PCCL_ASSIGN_OR_RETURN(auto claimed, RegionMemory::in_file_of(*other, bytes));
            if (claimed == nullptr) continue;
            std::shared_ptr<RegionMemory> memory(std::move(claimed));
            add(memory);
            return memory;
        }
    }
    PCCL_ASSIGN_OR_RETURN(auto fresh, RegionMemory::in_new_file(wanted));
    std::shared_ptr<RegionMemory> memory(std::move(fresh));
    add(memory);
    return memory;
}

void RegionStock::add(const std::shared_ptr<RegionMemory>& memory) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& known) { return known.expired(); });
    known_.push_back(memory);
}

std::vector<std::shared_ptr<RegionMemory>> RegionStock::one_of_each_file() {
    std::vector<std::shared_ptr<RegionMemory>> files;
    const std::lock_guard lock(mutex_);
    for (const auto& known : known_) {
        auto memory = known.lock();
        if (memory == nullptr) continue;
        const bool seen = std::ranges::any_of(
            files, [&](const auto& file) { return file->shares_file_with(*memory); });
        if (!seen) files.push_back(std::move(memory));
    }
    return files;
}

}  // namespace pccl::transport
