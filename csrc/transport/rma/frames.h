// What links of over_links.h send each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "csrc/transport/rma/registry.h"

namespace pccl::transport {

/// Not yet answered, of each end.
inline constexpr std::size_t kRmaWindow = 1024;
inline constexpr std::size_t kMostRmaNotifications = 64;
/// Blocks in lists of these requests.
inline constexpr std::size_t kRmaListed = 16'384;
/// Bytes of a request for several blocks, which is not given up any more. They may lie over each
/// other, so that no memory bounds what a few bytes ask for.
inline constexpr std::uint64_t kRmaTogether = 4 * kMiB;

enum class RmaFrameKind : std::uint8_t { kWrite, kRead, kNotification, kDone, kData, kTaken };

enum class RmaOutcome : std::uint8_t { kOk, kEnded, kOutOfBounds };

/// How a request names its blocks.
enum class RmaLayout : std::uint8_t { kRun, kList };

/// The head of a message. Behind that of a request with a list, `count` RmaExtents. Payload follows
/// a kWrite, kNotification and kData.
struct RmaFrame {
    std::uint32_t magic;
    RmaFrameKind kind;
    RmaOutcome outcome;  // kDone
    RmaLayout layout;    // kWrite, kRead
    std::uint8_t reserved;
    std::uint64_t number;  // requests count from 0; answers have their request's
    std::uint64_t bytes;   // of the payload, or asked for
    std::uint64_t id;      // kWrite, kRead
    std::uint64_t nonce;
    std::uint64_t count;   // of blocks
    std::uint64_t offset;  // of a run: where it begins
    std::uint64_t stride;  // of a run: from the begin of a block to that of the next
    std::uint64_t failed;  // kNotification: requests that it is conditional on
};
static_assert(sizeof(RmaFrame) == 72 && std::is_trivially_copyable_v<RmaFrame>);

inline constexpr std::uint32_t kRmaMagic = 0x504D'4133;

/// Of that kind, and no more.
[[nodiscard]] RmaFrame frame_of(RmaFrameKind kind, std::uint64_t number);
/// The head of a request; `range` says what it asks for.
[[nodiscard]] RmaFrame request_of(RmaFrameKind kind, std::uint64_t number, const RmaRange& range);

[[nodiscard]] inline bool is_request(const RmaFrame& head) {
    return head.kind == RmaFrameKind::kWrite || head.kind == RmaFrameKind::kRead;
}
/// How many extents follow the head; kInvalidArgument where that is none that can be.
[[nodiscard]] Result<std::size_t> listed_behind(const RmaFrame& head);
/// What a request is for; kInvalidArgument where its numbers do not go together. Whether there are
/// such blocks only the registry knows.
[[nodiscard]] Result<RmaRange> range_of(const RmaFrame& request, std::vector<RmaExtent> list);

}  // namespace pccl::transport
