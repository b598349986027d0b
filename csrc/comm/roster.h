// Who is in a group: agreed through the store when the group is made, the same on every rank.
#pragma once

#include <string>
#include <vector>

#include "csrc/comm/endpoint.h"
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
};

// In this order, with the group enrolled in its runtime between the two: whoever holds the roster
// may connect at once, for every rank in it knows the secret and accepts.

/// For a group of one rank, and for rank 0 to publish.
[[nodiscard]] Result<GroupIdentity> fresh_identity();

/// kTimeout when rank 0 has not come.
[[nodiscard]] Result<GroupIdentity> agree_on_identity(Store& store, Rank rank, Deadline deadline);

/// Publishes `mine`, and returns what rank 0 collected from all `size` ranks, with `tuning` if
/// this is rank 0. Errors: kTimeout
/// names the rank that has not published; kUnavailable when the store fails.
[[nodiscard]] Result<Roster> exchange_roster(Store& store, const Endpoint& mine, int size,
                                             std::string tuning, Deadline deadline);

}  // namespace pccl::comm
