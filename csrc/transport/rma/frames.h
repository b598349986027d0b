// What links of over_links.h say to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/transport/rma/registry.h"

namespace pccl::transport {

/// Not yet answered, of each end.
inline constexpr std::size_t kRmaWindow = 1024;
inline constexpr std::size_t kRmaWords = 64;

enum class RmaFrameKind : std::uint8_t { kWrite, kRead, kWord, kDone, kData, kTaken };

enum class RmaOutcome : std::uint8_t { kOk, kEnded, kOutOfBounds };

/// The head of a message. Payload follows a kWrite, kWord and kData.
struct RmaFrame {
    std::uint32_t magic;
    RmaFrameKind kind;
    RmaOutcome outcome;  // kDone
    std::uint16_t reserved;
    std::uint64_t number;  // requests count from 0; answers have their request's
    std::uint64_t id;      // kWrite, kRead
    std::uint64_t nonce;
    std::uint64_t offset;
    std::uint64_t bytes;   // of the payload, or asked for
    std::uint64_t failed;  // kWord: RmaProgress::failed that it is conditional on

    [[nodiscard]] RmaRange range() const {
        return {.registration = {.id = id, .nonce = nonce}, .offset = offset, .bytes = bytes};
    }
};
static_assert(sizeof(RmaFrame) == 56 && std::is_trivially_copyable_v<RmaFrame>);

inline constexpr std::uint32_t kRmaMagic = 0x504D'4132;

}  // namespace pccl::transport
