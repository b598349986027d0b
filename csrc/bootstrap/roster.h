// SPDX-License-Identifier: Apache-2.0

// Roster of a group: its members, agreed on through the store when the group is made, the same on
// every rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <pccl/store.h>
#include "csrc/base/ids.h"
#include "csrc/bootstrap/endpoint.h"
#include "csrc/bootstrap/rendezvous_context.h"
#include "csrc/transport/transport.h"

namespace pccl::bootstrap {

/// Random id and secret, which rank 0 makes.
struct GroupIdentity {
    transport::GroupId group{};
    transport::Secret secret{};
};

struct Roster {
    std::vector<Endpoint> endpoints;  // by rank
    std::string tuning;  // rank 0's, so that all choose alike; format of Tuning::parse()
    std::string costs;   // rank 0's, for the same reason; format of costs::MachineCosts::parse()
    std::string job;     // format of topo::decode_job(); empty on one host, unless it has parts
};

/// Returns the roster without these transports.
[[nodiscard]] Roster without(transport::TransportFlags kinds, Roster roster);

/// Most bytes of Roster::job.
inline constexpr std::size_t kMostJobBytes = 64 * kMiB;
inline constexpr std::size_t kMostTuningBytes = 24 * kKiB;
inline constexpr std::size_t kMostCostsBytes = 4 * kKiB;

/// Returns the view of `store` for entries before the group is known: as it is, or sealed under
/// PCCL_SECRET_FILE, where that is set. Returns the kInvalidArgument errors of secret_from_file().
[[nodiscard]] Result<std::shared_ptr<Store>> pre_join_at(std::shared_ptr<Store> store);
/// Returns the view of the store for entries once the group is known, which is also sealed under
/// its secret.
[[nodiscard]] std::shared_ptr<Store> group_namespace(std::shared_ptr<Store> pre_join,
                                                     const GroupIdentity& identity);

// Call these in order, with the group registered in its runtime between the two calls: a rank with
// the roster may connect at once, since every rank in it has the secret and accepts.

/// Returns an identity for a group of one rank, or for rank 0 to publish.
[[nodiscard]] Result<GroupIdentity> fresh_identity();

/// Returns kTimeout when rank 0 has not come, kPeerLost when it is gone.
[[nodiscard]] Result<GroupIdentity> agree_on_identity(Store& store, Rank rank,
                                                      const RendezvousContext& rendezvous);

/// Returns the first ranks that have not published, as many as an error lists.
[[nodiscard]] std::vector<Rank> unpublished(Store& store, int size);

/// Returns whether rank 0 has published the roster, or the error of a store that does not answer.
[[nodiscard]] Result<bool> has_roster(Store& store);

/// Publishes `mine`, with a nonce if it has none, and returns the roster that rank 0 has collected.
/// Returns kTimeout with the ranks that have not published; kPeerLost for a rank that is gone or
/// publishes malformed bytes; kMismatch if another process takes this one's place in the roster;
/// superseded() if that is this process at an earlier call, or another incarnation of the group is
/// open; kUnavailable when the store fails.
[[nodiscard]] Result<Roster> exchange_roster(Store& store, Endpoint mine,
                                             const RendezvousContext& rendezvous);

/// Removes the entries of `self`. Call it once no rank needs them.
void remove_roster(Store& store, Rank self, int size);

}  // namespace pccl::bootstrap
