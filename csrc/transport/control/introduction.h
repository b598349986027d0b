// What a connection is for: told once the secret is proven.
#pragma once

#include <array>
#include <cstdint>

#include "csrc/base/ids.h"
#include "csrc/transport/control/identity.h"

namespace pccl::transport {

/// What a connection is for; the acceptor believes it only once the secret is proven.
struct LinkRequest {
    GroupId group{};
    Rank source = 0;        // connects and sends
    Rank destination = 0;   // accepts and receives
    ChannelId channel = 0;  // of the schedule: a pair may have several links, told apart by this
    int group_size = 1;     // scales the buffers
    /// How often the group's network has changed its phase: a link is of one phase.
    std::uint32_t generation = 0;
};

/// Bytes of the transport's own that travel with a request, proven like it (which socket of which
/// link).
using Purpose = std::array<std::uint8_t, 64>;

struct Introduction {
    LinkRequest request = {};
    Purpose purpose{};
};

}  // namespace pccl::transport
