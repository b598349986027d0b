// SPDX-License-Identifier: Apache-2.0

// Owner of a memory mapping, which may be shared with other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::transport {

/// File that a process has open. Device and inode prove its identity: the system reuses numbers of
/// descriptors and of processes.
struct ProcessFile {
    std::int64_t pid = 0;
    std::int32_t file = -1;  // descriptor; -1: none
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
};

struct FileRange {
    std::uint64_t offset = 0;  // a multiple of the page size
    std::size_t bytes = 0;
};

/// Page-aligned memory, zero at first; pages cost nothing until they are touched.
class Mapping {
   public:
    Mapping() = default;
    /// Maps memory of this process alone. kResourceExhausted when there is no room.
    static Result<Mapping> anonymous(std::size_t bytes);
    /// Maps a new file, which others can map while this object lives; `name` shows in
    /// /proc/<pid>/maps. The file's size is sealed, so that no access can fault.
    static Result<Mapping> shareable(const std::string& name, std::size_t bytes);
    /// Maps `bytes` of private memory (a multiple of the page size) twice in a row, so that bytes
    /// of a ring are contiguous wherever they start: memory() has 2 * bytes. Errors as of
    /// shareable().
    static Result<Mapping> ring(std::size_t bytes);
    /// Maps a part of another process's shareable(). kUnsupported when it is not visible from here,
    /// not permitted to this user, or gone; kInvalidArgument when the file ends before the range.
    static Result<Mapping> of_process(const ProcessFile& file, const FileRange& range);

    Mapping(Mapping&& other) noexcept
        : memory_(std::exchange(other.memory_, {})), file_(std::move(other.file_)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(file_, other.file_);
        return *this;
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();

    /// Revokes all access to the memory and reserves its addresses while this process lives:
    /// nothing else is mapped there. The object is empty then.
    Status bar() &&;

    [[nodiscard]] std::span<std::byte> memory() const { return memory_; }
    /// Returns the file of a shareable(), while it lives; -1 for others.
    [[nodiscard]] int file() const { return file_.get(); }

   private:
    static Result<Mapping> map(UniqueFd file, const FileRange& range);

    std::span<std::byte> memory_;
    UniqueFd file_;  // open for a shareable() only
};

/// Maps `bytes` of a file from `offset` on, both multiples of the page size, twice in a row; the
/// caller unmaps 2 * bytes.
[[nodiscard]] Result<std::byte*> map_twice(int file, const FileRange& range);

/// Describes an open file of this process.
[[nodiscard]] Result<ProcessFile> describe_file(int file);
/// Returns the bytes that a shareable() has allocated of the machine's memory so far.
[[nodiscard]] std::uint64_t bytes_taken(int file);

/// Replaces the pages of a part of a shareable() by private copies, at the same addresses; call it
/// once. From then on writes of other processes that have mapped the part are lost, and their reads
/// return zeroes. Other threads may use the memory meanwhile. Ends when all pages are copied, or
/// early when `is_needed()`, called every few MiB, returns false because no other process writes
/// any more. Takes no more memory than all pages have, and some 0.8 s of a core for each GiB.
///
/// kUnsupported, with no effect, for a part that shares a page with other memory;
/// kResourceExhausted where this process may not have as much memory of its own.
Status make_private(std::span<std::byte> memory, int file, std::uint64_t offset,
                    const std::function<bool()>& is_needed);

}  // namespace pccl::transport
