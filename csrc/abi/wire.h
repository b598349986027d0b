// What goes over a link in front of payload. Little-endian hosts only; both ends check `magic`.
#pragma once

#include <cstdint>
#include <type_traits>

namespace pccl::abi {

inline constexpr std::uint16_t kCollectiveMagic = 0xC012;  // of version 2
inline constexpr std::uint16_t kMessageMagic = 0x5E9D;

/// What a collective of host memory goes over.
enum class Over : std::uint8_t { kLinks, kShm };

/// Opens the bytes of one collective on one link: what this rank believes it is doing. With two
/// numbers beside it, it fills a cache line of a segment: not a byte more.
struct CollectiveHeader {
    std::uint16_t magic;
    std::uint8_t kind;       // schedule::CollectiveKind
    std::uint8_t data_type;  // DataType
    std::uint8_t reduce_op;  // ReduceOp, and perhaps kOverlaps, kRefuses
    Over over;
    std::uint16_t root;        // or kBarrierRoot
    std::uint32_t sequence;    // of collectives in this group, modulo 2^32
    std::uint32_t generation;  // of the links: the number of the switch of phases that led to them
    std::uint64_t count;       // elements in the longest block
    std::uint32_t schedule;    // its tag (fingerprint.h), or the number of a segment's algorithm
    std::uint32_t window;      // bytes of a block in one round of the program
    std::uint32_t lengths;  // digest of counts that differ, and of overlaps; kLengthsOfPairs; or 0
    std::uint32_t history;  // digest of the collectives of this group before this one
};
static_assert(sizeof(CollectiveHeader) == 40 && std::is_trivially_copyable_v<CollectiveHeader>);

/// In reduce_op: elements of this rank's output share memory.
inline constexpr std::uint8_t kOverlaps = 0x80;
/// In reduce_op: this rank refuses a buffer of its own, and takes part without it.
inline constexpr std::uint8_t kRefuses = 0x40;
/// The root of an all_reduce that its user has called as a barrier.
inline constexpr std::uint16_t kBarrierRoot = 0xFFFF;
/// Only pairs of ranks know how long the blocks between them are.
inline constexpr std::uint32_t kLengthsOfPairs = 0xFFFFFFFF;

/// Opens one point-to-point message.
struct MessageHeader {
    std::uint16_t magic;
    std::uint16_t data_type;  // DataType + 1; 0: bytes of any
    std::int32_t tag;
    std::uint64_t bytes;
};
static_assert(sizeof(MessageHeader) == 16 && std::is_trivially_copyable_v<MessageHeader>);

}  // namespace pccl::abi
