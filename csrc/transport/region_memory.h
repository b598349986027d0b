// SPDX-License-Identifier: Apache-2.0

// Memory of regions: ranges of unnamed files, one range for each region.
//
// Rank 0 of a group claims a range in a file that its process already has, and makes a new file
// when none has room: all groups of a host that have ranks in common share 32 MiB. Each rank holds
// a lock on its range (of its own open file description, fcntl(2)), which the kernel drops however
// the process ends: a range is free again when none of its ranks lives. Pages are allocated on
// first use, and given back with the last lock or the next claim.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"

namespace pccl::transport {

/// Position of a region in its file. Travels between processes.
struct RegionExtent {
    std::uint64_t offset = 0;  // whole pages
    std::uint64_t bytes = 0;   // a multiple of the page size
};

class PCCL_API RegionMemory {
   public:
    static constexpr std::size_t kFileBytes = 32 * kMiB;

    /// Claims zeroed memory at the front of a new file. `bytes` is a multiple of the page size and
    /// at most kFileBytes.
    static Result<std::unique_ptr<RegionMemory>> in_new_file(std::size_t bytes);
    /// Claims zeroed memory in the file of another region; null when it has no room.
    static Result<std::unique_ptr<RegionMemory>> in_file_of(const RegionMemory& other,
                                                            std::size_t bytes);
    /// Maps a range that another process claimed and still holds. kInvalidArgument when the file is
    /// of another kind, or has no such range.
    static Result<std::unique_ptr<RegionMemory>> join(UniqueFd file, const RegionExtent& extent);
    ~RegionMemory();
    RegionMemory(const RegionMemory&) = delete;
    RegionMemory& operator=(const RegionMemory&) = delete;

    [[nodiscard]] std::span<std::byte> bytes() const { return memory_; }
    [[nodiscard]] const RegionExtent& extent() const { return extent_; }
    /// Returns the file for other ranks to join().
    [[nodiscard]] int file() const { return file_.get(); }
    [[nodiscard]] bool shares_file_with(const RegionMemory& other) const {
        return inode_ == other.inode_;
    }

   private:
    RegionMemory(UniqueFd file, ino_t inode) : file_(std::move(file)), inode_(inode) {}
    /// Claims a range of `file`; null when the file has no room.
    static Result<std::unique_ptr<RegionMemory>> claim_in(UniqueFd file, std::size_t bytes);
    /// Takes the first range that nobody holds; false when there is none.
    Result<bool> claim(std::size_t bytes);
    Status map();
    /// Frees the pages: the next reader of the range reads zeroes. Returns false, with errno set,
    /// on failure.
    [[nodiscard]] bool give_back_pages() const;

    UniqueFd file_;
    const ino_t inode_;
    RegionExtent extent_;
    std::span<std::byte> memory_;
};

/// All region memory of a process, so that it can claim more in the same files. Thread-safe.
class PCCL_API RegionStock {
   public:
    /// Claims `wanted` zeroed bytes, a multiple of the page size. Halves the size repeatedly, down
    /// to `least` (not 0), where that avoids a new file.
    Result<std::shared_ptr<RegionMemory>> claim(std::size_t wanted, std::size_t least);
    void add(const std::shared_ptr<RegionMemory>& memory);

   private:
    std::vector<std::shared_ptr<RegionMemory>> one_of_each_file();

    std::mutex mutex_;
    std::vector<std::weak_ptr<RegionMemory>> known_;
};

}  // namespace pccl::transport
