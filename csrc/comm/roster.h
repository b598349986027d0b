// Who is in a group: agreed through the store when the group is made, the same on every rank.
#pragma once

#include <string>
#include <vector>

#include "csrc/comm/endpoint.h"
#include "csrc/comm/meeting.h"
#include "csrc/comm/store.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

/// Made up by rank 0.
struct GroupIdentity {
    transport::GroupId group{};
    transport::Secret secret{};
};

struct Roster {
    std::vector<Endpoint> endpoints;  // by rank
    std::string tuning;  // rank 0's, so that all choose alike: what Tuning::parse() takes
    std::string job;     // what topo::decode_job() takes; empty on one host, unless it has parts
};

/// Bytes of Roster::job.
inline constexpr std::size_t kMostJobBytes = 64 * kMiB;

// In this order, with the group enrolled in its runtime between the two: whoever holds the roster
// may connect at once, for every rank in it knows the secret and accepts.

/// For a group of one rank, and for rank 0 to publish.
[[nodiscard]] Result<GroupIdentity> fresh_identity();

/// kTimeout when rank 0 has not come, kPeerLost when it is gone.
[[nodiscard]] Result<GroupIdentity> agree_on_identity(Store& store, Rank rank,
                                                      const Meeting& meeting);

/// Publishes `mine`, and returns what rank 0 collected from all ranks. Errors: kTimeout names the
/// ranks that have not published; kPeerLost a rank that is gone or publishes nonsense; kUnavailable
/// when the store fails.
[[nodiscard]] Result<Roster> exchange_roster(Store& store, const Endpoint& mine,
                                             const Meeting& meeting);

}  // namespace pccl::comm
