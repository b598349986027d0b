// One owner for a mapping of memory, which may be shared with other processes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "csrc/abi/memory.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::transport {

/// Page-aligned and zero at first; pages cost nothing until they are touched.
class Mapping {
   public:
    Mapping() = default;
    /// Of this process alone. kResourceExhausted when there is no room.
    static Result<Mapping> anonymous(std::size_t bytes);
    /// In a file of its own, which others can map while this lives; `name` shows in
    /// /proc/<pid>/maps. Its size is sealed: nobody's access can fault.
    static Result<Mapping> shareable(const std::string& name, std::size_t bytes);
    /// Another process's shareable(). kUnsupported when it is not on this host, not visible from
    /// here, or not ours to open.
    static Result<Mapping> of_peer(const abi::MemoryDescriptor& memory);

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
    /// Of a shareable(): everything but the owner and the transports.
    [[nodiscard]] Result<abi::MemoryDescriptor> describe() const;

   private:
    static Result<Mapping> map(UniqueFd file, std::size_t bytes);

    std::span<std::byte> memory_;
    UniqueFd file_;  // closed for anonymous()
};

}  // namespace pccl::transport
