// SPDX-License-Identifier: Apache-2.0

// Headers that precede the payload on a link. Hosts must be little-endian. Both ends check `magic`.
#pragma once

#include <cstdint>
#include <type_traits>

namespace pccl::abi {

inline constexpr std::uint16_t kCollectiveMagic = 0xC012;  // of version 2
inline constexpr std::uint16_t kMessageMagic = 0x5E9D;

/// Medium of a collective of host memory.
enum class Over : std::uint8_t { kLinks, kShm };

/// Header of one collective on one link: the sender's view of the collective. Together with two
/// numbers beside it, it fills a cache line of a shared-memory segment exactly.
struct CollectiveHeader {
    std::uint16_t magic;
    std::uint8_t kind;       // schedule::CollectiveKind
    std::uint8_t data_type;  // DataType
    std::uint8_t reduce_op;  // ReduceOp, and the flags kOverlaps, kRefuses
    Over over;
    std::uint16_t root;        // or kBarrierRoot
    std::uint32_t sequence;    // of collectives in this group, modulo 2^32
    std::uint32_t generation;  // of the links: number of the phase switch that created them
    std::uint64_t count;       // elements in the longest block
    std::uint32_t schedule;    // tag of the schedule (fingerprint.h), or number of the algorithm
    std::uint32_t window;      // bytes of a block in one round of the program
    std::uint32_t lengths;  // digest of counts that differ, and of overlaps; kLengthsOfPairs; or 0
    std::uint32_t history;  // digest of the earlier collectives of this group
};
static_assert(sizeof(CollectiveHeader) == 40 && std::is_trivially_copyable_v<CollectiveHeader>);

/// Flag in reduce_op: elements of this rank's output share memory.
inline constexpr std::uint8_t kOverlaps = 0x80;
/// Flag in reduce_op: this rank refuses one of its buffers and takes part without it.
inline constexpr std::uint8_t kRefuses = 0x40;
/// Root of an all_reduce that the user called as a barrier.
inline constexpr std::uint16_t kBarrierRoot = 0xFFFF;
/// Value of `lengths` where block lengths are known only to pairs of ranks.
inline constexpr std::uint32_t kLengthsOfPairs = 0xFFFFFFFF;

/// Header of one point-to-point message.
struct MessageHeader {
    std::uint16_t magic;
    std::uint16_t data_type;  // DataType + 1; 0: bytes of any type
    std::int32_t tag;
    std::uint64_t bytes;
};
static_assert(sizeof(MessageHeader) == 16 && std::is_trivially_copyable_v<MessageHeader>);

}  // namespace pccl::abi
