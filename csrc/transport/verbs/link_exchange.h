// SPDX-License-Identifier: Apache-2.0

// Messages by which both ends of a link exchange queue pairs and memory, over the connection on
// which they have proven the group's secret: the sender's end first, then the receiver's, or why it
// takes no link.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/sys/socket/address.h"
#include "csrc/transport/control/answer.h"
#include "csrc/transport/verbs/connect_way.h"
#include "csrc/transport/verbs/queue_pair.h"

namespace pccl::transport::verbs {

/// Memory of one end that the other end writes.
struct PeerRange {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> keys;  // by device of that end

    bool operator==(const PeerRange&) const = default;
};

/// Proof, beside the place, that a connection by rdma_cm belongs to a link.
using CmToken = std::array<std::uint8_t, 16>;

/// Where a responder takes connections by rdma_cm.
struct CmDoor {
    sys::verbs::RawGid address{};  // IPv6, or IPv4 mapped
    std::uint16_t port = 0;        // 0: none
    CmToken token{};

    [[nodiscard]] static CmDoor at(const sys::Address& address, const CmToken& token);
    [[nodiscard]] bool is_set() const { return port != 0; }
    [[nodiscard]] Result<sys::Address> to_address() const;
    bool operator==(const CmDoor&) const = default;
};

/// Queue pair of one end.
struct LaneEnd {
    std::uint8_t device = 0;   // index in PeerRange::keys
    std::uint8_t partner = 0;  // of a receiver: index of the sender's queue pair that it connects
    QueuePairAddress pair;
    CmDoor door{};  // of a responder, where both have agreed on rdma_cm

    bool operator==(const LaneEnd&) const = default;
};

struct LinkEnd {
    static constexpr std::size_t kMostLanes = 16;
    static constexpr std::size_t kMostDevices = 8;
    static constexpr std::size_t kMostRanges = 3;
    static constexpr std::uint32_t kLeastRing = 64 * kKiB;
    static constexpr std::uint32_t kMostRing = 64 * kMiB;
    static constexpr std::size_t kLongest = 4 * kKiB;  // serialised
    static constexpr std::uint32_t kMostReceives = 1024;

    std::uint32_t ring_bytes = kLeastRing;  // of each channel; a power of two
    std::uint32_t receives = 0;             // receive requests of each queue pair
    /// What the sender wants, or the receiver has agreed on.
    ConnectWay way = ConnectWay::kAuto;
    std::vector<PeerRange> memory;
    std::vector<LaneEnd> lanes;

    bool operator==(const LinkEnd&) const = default;
    [[nodiscard]] std::string serialise() const;
    /// Parses bytes of any origin. kInvalidArgument names the field or the place; kUnsupported
    /// stands for another version.
    static Result<LinkEnd> parse(std::string_view bytes);
};

/// Serialises one lane, and parses it from bytes of any origin.
[[nodiscard]] std::string serialise_lane(const LaneEnd& lane);
[[nodiscard]] Result<LaneEnd> parse_lane(std::string_view bytes);

/// Serialises the message of an end, with its length.
[[nodiscard]] std::string message_of(const Result<LinkEnd>& end);

/// Receiver of one such message on a non-blocking socket.
class LinkEndReader {
   public:
    /// Returns the end once the message is whole. The peer's refusal, or malformed bytes, are the
    /// error. Does not block.
    Result<std::optional<LinkEnd>> advance(int socket);

   private:
    AnswerReader answer_{"an RDMA link", LinkEnd::kLongest};
};

}  // namespace pccl::transport::verbs
