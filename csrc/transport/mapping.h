// One owner for a mapping of memory, which may be shared with other processes.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace pccl::transport
