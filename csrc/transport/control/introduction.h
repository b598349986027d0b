// What a connection is for: told once the secret is proven.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "csrc/base/ids.h"
#include "csrc/transport/control/identity.h"

namespace pccl::transport {

/// What the far process is asked for.
enum class Service : std::uint8_t {
    kLink,    // takes a link
    kRegion,  // takes a share in memory
    kQuery,   // says how a rank fares
    kNotice,  // receives why a rank has left
    kStatus,  // says to an onlooker in what the process is
};
inline constexpr int kServices = 5;

/// Who asks whom, and in which group.
struct LinkRequest {
    GroupId group{};
    Rank source = 0;        // connects and sends; kNoRank: a session of p2p, as its peer
    Rank destination = 0;   // accepts and receives
    ChannelId channel = 0;  // of the schedule: a pair may have several links, told apart by this
    int group_size = 1;
    int host_ranks = 1;  // of the source's host: scales what links of a host take; not told
    /// How often the group's network has changed its phase: a link is of one phase.
    std::uint32_t generation = 0;
};

/// Bytes of the service's own that travel with a request, proven like it (which socket of which
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
/// The other way, from any bytes.
template <FitsPurpose Value>
[[nodiscard]] Value value_in(const Purpose& bytes) {
    Value value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

/// What a connection is for; the acceptor believes it only once the secret is proven.
struct Introduction {
    LinkRequest request = {};
    Service service = Service::kLink;
    std::uint8_t transport = 0;  // of a link or a region: the TransportKind
    Purpose purpose{};
};

}  // namespace pccl::transport
