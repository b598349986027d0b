// SPDX-License-Identifier: Apache-2.0

// Failover of a link from a lane that has failed to the others, exactly once:
//
//   1. The sender puts its queue pair of the lane into the state ERROR, and sends the receiver a
//   list
//      of the pieces of the lane that may not have arrived.
//   2. The receiver puts its own queue pair into ERROR: no write of the lane arrives any more. It
//      takes everything that has arrived, and answers which pieces of the list have.
//   3. The sender sends the other pieces on other lanes.
//
// Both messages are RDMA writes into a mailbox in memory of the other end (link_pages.h), with an
// immediate, on one lane that works. If that lane fails, too, the sender repeats its request, with
// a new sequence number, on another one: the receiver answers any number of times.
//
// A receiver that finds a lane broken reports it to the sender, whose device would try again for
// seconds. It repeats the report with each further lane that is lost, since that one may have
// carried it, until the sender sends a list for the lane.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/link_exchange.h"
#include "csrc/transport/verbs/link_pages.h"

namespace pccl::transport::verbs {

/// Piece of a stream that was posted on a lane.
struct PostedPiece {
    std::uint64_t id = 0;  // of its last request on the lane
    ChannelId channel = 0;
    std::uint64_t begin = 0;  // in the stream
    std::uint32_t bytes = 0;

    [[nodiscard]] std::uint64_t end() const { return begin + bytes; }
    bool operator==(const PostedPiece&) const = default;
};

struct FailoverRequest {
    /// At most one uncertain piece for each request of a lane.
    static constexpr std::size_t kMostPieces = 128;

    std::uint32_t sequence = 0;
    std::uint8_t lane = 0;
    std::vector<PostedPiece> pieces;  // without ids

    [[nodiscard]] std::string serialise() const;
    /// Parses bytes of any origin; bytes behind the message are ignored. kInvalidArgument names the
    /// place.
    static Result<FailoverRequest> parse(std::string_view bytes);
};

struct FailoverAnswer {
    std::uint32_t sequence = 0;
    std::vector<bool> has_arrived;  // by piece

    [[nodiscard]] std::string serialise() const;
    static Result<FailoverAnswer> parse(std::string_view bytes);
};

}  // namespace pccl::transport::verbs
