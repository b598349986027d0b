// How processes of one host reach a registered memory: what shared memory adds to its descriptor.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/abi/memory.h"
#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/mapping.h"

namespace pccl::transport::shm {

/// Of memory of a GPU that CUDA IPC shares.
struct GpuKey {
    sys::cuda::GpuId gpu{};
    sys::cuda::IpcHandle allocation{};
    std::uint64_t offset = 0;  // of the memory in that
};

struct MemoryKey {
    std::uint64_t host = 0;     // hash of the owner's host identity
    std::uint64_t address = 0;  // of the memory, in the owner's process
    ProcessFile ledger;         // of the owner (ledger.h)
    std::uint32_t line = 0;
    std::uint64_t line_address = 0;  // of the line's nonce, in the owner's process
    std::int32_t file = -1;          // of the same process: the memory is mapped from it; -1: none
    std::uint64_t inode = 0;         // of that file, on the device of the ledger
    std::uint64_t offset = 0;        // of the memory in that file
    std::optional<GpuKey> gpu{};
};

/// kResourceExhausted where the descriptor has no room.
[[nodiscard]] PCCL_API Status add_key(abi::MemoryDescriptor& memory, const MemoryKey& key);

/// From a descriptor of any origin: kUnsupported when it has no such key, kInvalidArgument when a
/// field cannot be.
[[nodiscard]] PCCL_API Result<MemoryKey> key_on_its_host(const abi::MemoryDescriptor& memory);
/// The same, and kUnsupported when it is of another host, which a file of the system tells: 13 us.
[[nodiscard]] PCCL_API Result<MemoryKey> key_on_this_host(const abi::MemoryDescriptor& memory);

/// Hash of this host's identity.
[[nodiscard]] PCCL_API Result<std::uint64_t> host_hash();

/// A peer's memory as this process sees it.
struct MemoryView {
    Mapping mapping;
    std::span<std::byte> memory;
};
/// kUnsupported where it is not in a file that can be mapped, or not visible from here. It stays
/// valid whatever becomes of the registration.
[[nodiscard]] PCCL_API Result<MemoryView> map_memory(const abi::MemoryDescriptor& memory);
/// The same of a process that has another number here than it told.
[[nodiscard]] PCCL_API Result<MemoryView> map_memory(const MemoryKey& key, std::uint64_t bytes);

}  // namespace pccl::transport::shm
