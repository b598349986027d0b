// SPDX-License-Identifier: Apache-2.0

// Messages between links of over_links.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/rma/registry.h"

namespace pccl::transport {

/// Limits of unanswered messages, for each end.
inline constexpr std::size_t kRmaWindow = 1024;
inline constexpr std::size_t kMostRmaNotifications = 64;
/// Limit of blocks in lists of these requests.
inline constexpr std::size_t kRmaListed = 16'384;
/// Bytes of a request for several blocks, which cannot be cancelled. Blocks may overlap, so that
/// the size of a memory does not bound the bytes of a request.
inline constexpr std::uint64_t kRmaTogether = 4 * kMiB;
/// Limit of the lanes of a bundle (bundle.h): each has two links, with sockets of their own.
inline constexpr std::size_t kMostRmaLanes = 4;

/// Value of RmaFrame::failed of a notification that no failure drops.
inline constexpr std::uint64_t kRmaUnconditional = ~std::uint64_t{0};

enum class RmaFrameKind : std::uint8_t {
    kWrite,
    kRead,
    kNotification,
    kDone,
    kData,
    kTaken,
    kOnLane,
};

enum class RmaOutcome : std::uint8_t { kOk, kEnded, kOutOfBounds };

/// Encoding of the blocks of a request.
enum class RmaLayout : std::uint8_t { kRun, kList };

/// Header of a message. `count` RmaExtents follow the header of a request with a list. Payload
/// follows a kWrite, kNotification and kData.
struct RmaFrame {
    std::uint32_t magic;
    RmaFrameKind kind;
    RmaOutcome outcome;  // kDone
    RmaLayout layout;    // kWrite, kRead
    std::uint8_t reserved;
    std::uint64_t number;  // requests count from 0; answers repeat their request's number; kOnLane:
                           // requests that were put on a lane so far
    std::uint64_t bytes;   // of the payload, or requested
    std::uint64_t id;      // kWrite, kRead
    std::uint64_t nonce;
    std::uint64_t count;   // number of blocks; kOnLane: the lane
    std::uint64_t offset;  // of a run: its start
    std::uint64_t stride;  // of a run: from the start of a block to that of the next
    std::uint64_t failed;  // kNotification: known failures of earlier requests; or unconditional
};
static_assert(sizeof(RmaFrame) == 72 && std::is_trivially_copyable_v<RmaFrame>);

inline constexpr std::uint32_t kRmaMagic = 0x504D'4133;

/// Returns a header of that kind, with all other fields 0.
[[nodiscard]] RmaFrame frame_of(RmaFrameKind kind, std::uint64_t number);
/// Returns the header of a request for `range`.
[[nodiscard]] RmaFrame request_of(RmaFrameKind kind, std::uint64_t number, const RmaRange& range);

[[nodiscard]] inline bool is_request(const RmaFrame& head) {
    return head.kind == RmaFrameKind::kWrite || head.kind == RmaFrameKind::kRead;
}
/// Returns how many extents follow the header; kInvalidArgument for an impossible number.
[[nodiscard]] Result<std::size_t> listed_behind(const RmaFrame& head);
/// Returns the range of a request; kInvalidArgument where its numbers are inconsistent. Only the
/// registry checks whether such blocks exist.
[[nodiscard]] Result<RmaRange> range_of(const RmaFrame& request, std::vector<RmaExtent> list);
/// Returns the error for a peer whose link sent `what`, which violates the protocol.
[[nodiscard]] Status rma_protocol_error(std::string_view what);

}  // namespace pccl::transport
