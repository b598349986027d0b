// Who is in a group: agreed through the store when the group is made, the same on every rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/bootstrap/endpoint.h"
#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/bootstrap/rendezvous_context.h"
#include "csrc/transport/transport.h"

namespace pccl::bootstrap {

/// Made up by rank 0.
struct GroupIdentity {
    transport::GroupId group{};
    transport::Secret secret{};
};

struct Roster {
    std::vector<Endpoint> endpoints;  // by rank
    std::string tuning;  // rank 0's, so that all choose alike: what Tuning::parse() takes
    std::string costs;   // rank 0's, likewise: what costs::MachineCosts::parse() takes
    std::string job;     // what topo::decode_job() takes; empty on one host, unless it has parts
};

/// Returns the roster with these transports taken from all ranks.
[[nodiscard]] Roster without(transport::TransportFlags kinds, Roster roster);

/// Bytes of Roster::job.
inline constexpr std::size_t kMostJobBytes = 64 * kMiB;
inline constexpr std::size_t kMostTuningBytes = 24 * kKiB;
inline constexpr std::size_t kMostCostsBytes = 4 * kKiB;

/// `store` for what ranks say before they know the group: as it is, or sealed under
/// PCCL_SECRET_FILE, where that is set. kInvalidArgument as secret_from_file() has it.
[[nodiscard]] Result<std::shared_ptr<Store>> pre_join_at(std::shared_ptr<Store> store);
/// The same for what they say of it afterwards: sealed under its secret besides.
[[nodiscard]] std::shared_ptr<Store> group_namespace(std::shared_ptr<Store> pre_join,
                                                     const GroupIdentity& identity);

// In this order, with the group registered in its runtime between the two: whoever holds the roster
// may connect at once, for every rank in it knows the secret and accepts.

/// For a group of one rank, and for rank 0 to publish.
[[nodiscard]] Result<GroupIdentity> fresh_identity();

/// kTimeout when rank 0 has not come, kPeerLost when it is gone.
[[nodiscard]] Result<GroupIdentity> agree_on_identity(Store& store, Rank rank,
                                                      const RendezvousContext& rendezvous);

/// The first ranks that have not published, of those worth naming.
[[nodiscard]] std::vector<Rank> unpublished(Store& store, int size);

/// Whether rank 0 has published it.
[[nodiscard]] bool has_roster(Store& store);

/// Publishes `mine`, with a nonce if it has none, and returns what rank 0 collected from all ranks.
/// Errors: kTimeout names the ranks that have not published; kPeerLost a rank that is gone or
/// publishes malformed bytes; kMismatch another process that is in the roster in this one's place;
/// superseded() where that is this process at an earlier call, or another incarnation of the group
/// is open; kUnavailable when the store fails.
[[nodiscard]] Result<Roster> exchange_roster(Store& store, Endpoint mine,
                                             const RendezvousContext& rendezvous);

/// What `self` published for it, once nobody needs it any more.
void remove_roster(Store& store, Rank self, int size);

}  // namespace pccl::bootstrap
