// SPDX-License-Identifier: Apache-2.0

// Key of shared memory in a descriptor: how processes of one host access a registered memory.
#pragma once

#include <cstdint>
#include <optional>

#include <pccl/status.h>
#include "csrc/abi/memory.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/mapping.h"

namespace pccl::transport::shm {

/// Key of memory of a GPU that CUDA IPC shares.
struct GpuKey {
    sys::cuda::GpuId gpu{};
    sys::cuda::IpcHandle allocation{};
    std::uint64_t offset = 0;  // of the memory in the allocation
};

struct MemoryKey {
    std::uint64_t host = 0;     // hash of the owner's host identity
    std::uint64_t address = 0;  // of the memory, in the owner's process
    ProcessFile ledger;         // of the owner (ledger.h)
    std::uint32_t line = 0;
    std::uint64_t line_address = 0;  // of the line's nonce, in the owner's process
    std::int32_t file = -1;          // descriptor of a file of that process from which the memory
                                     // is mapped; -1: none
    std::uint64_t inode = 0;         // of that file, on the device of the ledger
    std::uint64_t offset = 0;        // of the memory in that file
    std::optional<GpuKey> gpu{};
};

/// Adds a key; kResourceExhausted where the descriptor has no room.
[[nodiscard]] PCCL_API Status add_key(abi::MemoryDescriptor& memory, const MemoryKey& key);

/// Parses a descriptor of any origin: kUnsupported when it has no such key, kInvalidArgument when a
/// field is invalid.
[[nodiscard]] PCCL_API Result<MemoryKey> key_on_its_host(const abi::MemoryDescriptor& memory);
/// Parses a descriptor like key_on_its_host(), and returns kUnsupported for one of another host. It
/// reads this host's identity from a file, which takes 13 us.
[[nodiscard]] PCCL_API Result<MemoryKey> key_on_this_host(const abi::MemoryDescriptor& memory);

/// Returns a hash of this host's identity.
[[nodiscard]] PCCL_API Result<std::uint64_t> host_hash();

/// Peer's memory as this process maps it.
struct MemoryView {
    Mapping mapping;
    std::span<std::byte> memory;
};
/// Maps a memory. kUnsupported where it is not in a file that can be mapped, or not visible from
/// here. The mapping stays valid after the registration ends.
[[nodiscard]] PCCL_API Result<MemoryView> map_memory(const abi::MemoryDescriptor& memory);
/// Maps a memory of a process whose number here differs from that in its descriptor: `key` has the
/// number here.
[[nodiscard]] PCCL_API Result<MemoryView> map_memory(const MemoryKey& key, std::uint64_t bytes);

}  // namespace pccl::transport::shm
