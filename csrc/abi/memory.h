// A piece of memory that its owner lets others reach.
#pragma once

#include <cstdint>
#include <type_traits>

namespace pccl::abi {

/// Memory of one rank. On the owner's host it can be mapped: `file` is a descriptor in process
/// `pid` of the file behind it, whose device and inode prove that it is the right one.
struct MemoryDescriptor {
    std::uint64_t address;  // in the owner's process
    std::uint64_t bytes;
    std::uint64_t host;    // hash of the owner's host identity
    std::uint64_t device;  // of the file
    std::uint64_t inode;
    std::int64_t pid;
    std::int32_t file;         // -1: cannot be mapped
    std::int32_t owner;        // rank
    std::uint32_t transports;  // TransportFlags::bits() that reach it
    std::uint32_t reserved;
};
static_assert(sizeof(MemoryDescriptor) == 64 && std::is_trivially_copyable_v<MemoryDescriptor>);

}  // namespace pccl::abi
