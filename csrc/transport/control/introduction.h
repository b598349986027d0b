// SPDX-License-Identifier: Apache-2.0

// Purpose of a connection, sent once the secret is proven.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "csrc/base/ids.h"

namespace pccl::transport {

/// Name of a group in a handshake; random, not secret.
using GroupId = std::array<std::uint8_t, 16>;
/// Key that the ranks of a group share; never sent.
using Secret = std::array<std::uint8_t, 32>;

/// Service that the far process provides.
enum class Service : std::uint8_t {
    kLink,    // takes a link
    kRegion,  // takes a share in memory
    kQuery,   // returns the state of a rank
    kNotice,  // receives why a rank has left
    kStatus,  // reports the groups of the process to an onlooker
};
inline constexpr int kServices = 5;

/// Both ranks of a request, and their group.
struct LinkRequest {
    GroupId group{};
    Rank source = 0;        // connects and sends; kNoRank: a session of p2p, as its peer
    Rank destination = 0;   // accepts and receives
    ChannelId channel = 0;  // of the schedule: a pair may have several links, which differ in this
    int group_size = 1;
    int host_ranks = 1;  // of the source's host: scales the resources of links within a host; not
                         // sent
    /// Number of phase changes of the group's network: a link belongs to one phase.
    std::uint32_t generation = 0;
};

/// Bytes of the service's own that travel with a request and its proof (which socket of which
/// link).
using Purpose = std::array<std::uint8_t, 64>;

template <typename Value>
concept FitsPurpose = std::has_unique_object_representations_v<Value> &&
                      std::is_trivially_copyable_v<Value> && sizeof(Value) <= sizeof(Purpose);

template <FitsPurpose Value>
[[nodiscard]] Purpose purpose_of(const Value& value) {
    Purpose bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}
/// Reads a value back, from any bytes.
template <FitsPurpose Value>
[[nodiscard]] Value value_in(const Purpose& bytes) {
    Value value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

/// Purpose of a connection; the acceptor trusts it only once the secret is proven.
struct Introduction {
    LinkRequest request = {};
    Service service = Service::kLink;
    std::uint8_t transport = 0;  // TransportKind of a link or a region
    Purpose purpose{};
};

}  // namespace pccl::transport
