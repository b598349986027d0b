// The memory of regions: ranges of files that have no name, one range for each region.
//
// Rank 0 of a group claims a range in a file that its process has already, and makes a new file
// when none has room: all groups of a host that have ranks in common share 32 MiB. Each rank holds
// a lock on its range (of its own open file description, fcntl(2)), which the kernel drops however
// the process ends: a range is free again as soon as none of its ranks lives. Pages are allocated
// when they are first used, and given back with the last lock or the next claim.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::transport {

/// Where a region lies in its file. Travels between processes.
struct RegionExtent {
    std::uint64_t offset = 0;  // whole pages
    std::uint64_t bytes = 0;   // as well
};

class PCCL_API RegionMemory {
   public:
    static constexpr std::size_t kFileBytes = 32 * kMiB;

    /// Zeroes, at the front of a new file. `bytes` is a multiple of the page size and at most
    /// kFileBytes.
    static Result<std::unique_ptr<RegionMemory>> in_new_file(std::size_t bytes);
    /// Zeroes, in the file of another region; null when it has no room.
    static Result<std::unique_ptr<RegionMemory>> in_file_of(const RegionMemory& other,
                                                            std::size_t bytes);
    /// What another process claimed and still holds. kInvalidArgument when the file is not one of
    /// these, or has no such range.
    static Result<std::unique_ptr<RegionMemory>> join(UniqueFd file, const RegionExtent& extent);
    ~RegionMemory();
    RegionMemory(const RegionMemory&) = delete;
    RegionMemory& operator=(const RegionMemory&) = delete;

    [[nodiscard]] std::span<std::byte> bytes() const { return memory_; }
    [[nodiscard]] const RegionExtent& extent() const { return extent_; }
    /// For other ranks to join().
    [[nodiscard]] int file() const { return file_.get(); }
    [[nodiscard]] bool shares_file_with(const RegionMemory& other) const {
        return inode_ == other.inode_;
    }

   private:
    RegionMemory(UniqueFd file, ino_t inode) : file_(std::move(file)), inode_(inode) {}
    /// Null when the file has no room.
    static Result<std::unique_ptr<RegionMemory>> claim_in(UniqueFd file, std::size_t bytes);
    /// Takes the first range that nobody holds: false when there is none.
    Result<bool> claim(std::size_t bytes);
    Status map();
    /// False with errno set. Who reads the range next, sees zeroes.
    [[nodiscard]] bool give_back_pages() const;

    UniqueFd file_;
    const ino_t inode_;
    RegionExtent extent_;
    std::span<std::byte> memory_;
};

/// The region memory that a process has, to claim more beside it. Safe from every thread.
class PCCL_API RegionStock {
   public:
    /// Zeroes: `wanted` bytes, whole pages; or a half of these, a quarter and so on, at least
    /// `least`, which is not 0, where that spares a new file.
    Result<std::shared_ptr<RegionMemory>> claim(std::size_t wanted, std::size_t least);
    void add(const std::shared_ptr<RegionMemory>& memory);

   private:
    std::vector<std::shared_ptr<RegionMemory>> one_of_each_file();

    std::mutex mutex_;
    std::vector<std::weak_ptr<RegionMemory>> known_;
};

}  // namespace pccl::transport
