// One owner for a mapping of memory, which may be shared with other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::transport {

/// A file that a process has open. Device and inode prove that it is the one that is meant: numbers
/// of descriptors and of processes are given out again.
struct ProcessFile {
    std::int64_t pid = 0;
    std::int32_t file = -1;  // descriptor; -1: none
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
};

struct FileRange {
    std::uint64_t offset = 0;  // whole pages
    std::size_t bytes = 0;
};

/// Page-aligned and zero at first; pages cost nothing until they are touched.
class Mapping {
   public:
    Mapping() = default;
    /// Of this process alone. kResourceExhausted when there is no room.
    static Result<Mapping> anonymous(std::size_t bytes);
    /// In a file of its own, which others can map while this lives; `name` shows in
    /// /proc/<pid>/maps. Its size is sealed: nobody's access can fault.
    static Result<Mapping> shareable(const std::string& name, std::size_t bytes);
    /// A part of another process's shareable(). kUnsupported when it is not visible from here, not
    /// ours to open, or gone; kInvalidArgument when the file ends before the range.
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

    /// Lets nobody read or write there any more, nor anything else be mapped there while this
    /// process lives. The object is empty then.
    Status bar() &&;

    [[nodiscard]] std::span<std::byte> memory() const { return memory_; }
    /// Of a shareable(), while it lives; -1 for others.
    [[nodiscard]] int file() const { return file_.get(); }

   private:
    static Result<Mapping> map(UniqueFd file, const FileRange& range);

    std::span<std::byte> memory_;
    UniqueFd file_;  // of shareable()
};

/// Of this process.
[[nodiscard]] Result<ProcessFile> describe_file(int file);
/// Bytes that a shareable() has taken of the machine so far.
[[nodiscard]] std::uint64_t bytes_taken(int file);

/// Once: puts copies of the pages of a part of a shareable() in their place, at the same addresses,
/// of which this process alone knows: what others that have mapped it write from then on is lost,
/// and what they read is zeroes. Other threads may use the memory meanwhile. Done when it returns,
/// or when `is_needed()`, which is asked every few MiB, says that nobody else writes any more. It
/// takes no more memory than all pages have, and some 0.8 s of a core for each GiB.
///
/// kUnsupported, and nothing done, for a part that does not have its pages for itself;
/// kResourceExhausted where this process may not have as much memory of its own.
Status make_private(std::span<std::byte> memory, int file, std::uint64_t offset,
                    const std::function<bool()>& is_needed);

}  // namespace pccl::transport
