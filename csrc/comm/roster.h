// Who is in a group: agreed through the store when the group is made, the same on every rank.
#pragma once

#include <string>
#include <vector>

#include "csrc/comm/endpoint.h"
#include "csrc/comm/store.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

struct Roster {
    transport::GroupId group{};
    transport::Secret secret{};
    std::vector<Endpoint> endpoints;  // by rank
};

/// Publishes `mine`, and returns what rank 0 collected from all `size` ranks. Errors: kTimeout names the
/// rank that has not published; kUnavailable when the store fails.
[[nodiscard]] Result<Roster> exchange_roster(Store& store, const Endpoint& mine, int size,
                                             Deadline deadline);

}  // namespace pccl::comm
