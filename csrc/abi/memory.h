// SPDX-License-Identifier: Apache-2.0

// Descriptor of a memory region that its owner lets peers access.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pccl::abi {

enum class MemoryKind : std::uint8_t { kHost, kGpu };
inline constexpr int kMemoryKinds = 2;

inline constexpr std::uint16_t kMemoryVersion = 2;
inline constexpr std::size_t kMemoryKeyBytes = 216;

/// A plain value of version 2. `id` and `nonce` identify one registration: no later one, of this or
/// another process, has both. `keys` has an entry for each transport that reaches the memory
/// without the owner's help: a TransportKind, a length and the key's bytes.
struct MemoryDescriptor {
    std::uint64_t id;
    std::uint64_t nonce;  // random, never 0
    std::uint64_t bytes;
    MemoryKind kind;
    std::uint8_t reserved;
    std::uint16_t key_bytes;  // used bytes of `keys`; the others are 0
    std::array<std::uint8_t, kMemoryKeyBytes> keys;

    friend bool operator==(const MemoryDescriptor&, const MemoryDescriptor&) = default;
};
static_assert(sizeof(MemoryDescriptor) < 256 && std::is_trivially_copyable_v<MemoryDescriptor>);

}  // namespace pccl::abi
