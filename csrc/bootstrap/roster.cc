// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/roster.h"

#include <span>
#include <string_view>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/config.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/front_coding.h"
#include "csrc/bootstrap/rendezvous/sealed_store.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/bootstrap/tree_gather.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::bootstrap {
namespace {

constexpr const char* kIdentityKey = "pccl/identity";
constexpr const char* kEndpointKey = "endpoint";
constexpr const char* kRosterKey = "roster";
constexpr transport::GroupId kPreJoin{'p', 'c', 'c', 'l', ' ', 'l', 'o', 'b', 'b', 'y'};
constexpr std::size_t kMaxEndpoint = 8 * kKiB;

Status nobody_came(Store& store, int size) {
    const std::vector<Rank> ranks = unpublished(store, size);
    if (!ranks.empty())
        return Status::timeout(
            concat("timed out: ", listed(ranks), ranks.size() > 1 ? " have" : " has",
                   " not joined; is every rank running?"),
            ranks.front());
    const Rank idle = idle_gatherer_in(store, kEndpointKey, size);
    return Status::timeout(
        concat("timed out: rank ", idle, " has not gathered ",
               idle == 0 ? "the group" : "the ranks behind it", "; is it stopped?"),
        idle);
}

/// Returns rank 0 where this rank must check that it is alive. Checks by all ranks would overload
/// rank 0, so only gatherers and the ranks of rank 0's own subgroup check it.
std::vector<Endpoint> root_seen_by(Rank self, const RendezvousContext& rendezvous) {
    const Rank gatherer = gatherer_of(self, rendezvous.size);
    const bool looks = rendezvous.root != nullptr && (gatherer == 0 || gatherer == self);
    return looks ? std::vector{*rendezvous.root} : std::vector<Endpoint>();
}

Result<std::string> fetch(Store& store, std::span<const Endpoint> present,
                          const RendezvousContext& rendezvous) {
    const std::size_t most = static_cast<std::size_t>(rendezvous.size) * (kMaxEndpoint + 4) +
                             kMostTuningBytes + kMostCostsBytes + kMostJobBytes + 16;
    return await_text(store, {kRosterKey, 0, present}, most, rendezvous);
}

std::string serialise(const Roster& roster) {
    ByteWriter out;
    out.u32(static_cast<std::uint32_t>(roster.endpoints.size()));
    std::vector<std::string> endpoints;
    endpoints.reserve(roster.endpoints.size());
    for (const Endpoint& endpoint : roster.endpoints) endpoints.push_back(endpoint.serialise());
    write_front_coded(endpoints, out);
    out.text(roster.tuning);
    out.text(roster.costs);
    out.text(roster.job);
    return out.take();
}

Result<Roster> parse(const std::string& text, int size) {
    ByteReader in(text);
    Roster roster;
    std::uint32_t count = 0;
    PCCL_TRY(in.u32(count));
    if (count != static_cast<std::uint32_t>(size))
        return Status::mismatch(
            0, concat("rank 0 made a group of ", count, " ranks, this rank one of ", size));
    PCCL_TRY(read_front_coded(in, count, kMaxEndpoint, [&](std::string_view blob) -> Status {
        PCCL_ASSIGN_OR_RETURN(roster.endpoints.emplace_back(), Endpoint::deserialise(blob));
        return Status::ok();
    }));
    PCCL_TRY(in.text(roster.tuning, kMostTuningBytes));
    PCCL_TRY(in.text(roster.costs, kMostCostsBytes));
    PCCL_TRY(in.text(roster.job, kMostJobBytes));
    PCCL_TRY(in.finish());
    return roster;
}

/// Checks that rank 0's roster contains the entry that this process has just published.
Status check_own_place(const Roster& roster, const Endpoint& mine) {
    const Endpoint& other = roster.endpoints[static_cast<std::size_t>(mine.rank)];
    if (other.nonce == mine.nonce) return Status::ok();
    const bool is_own = other.host == mine.host && other.pid == mine.pid &&
                        other.address.control == mine.address.control;
    if (is_own) return superseded();
    return Status::mismatch(
        mine.rank, concat("the group has another process as this rank: ", other.to_string(),
                          "; give each process a rank of its own"));
}

Result<Endpoint> endpoint_in(const std::string& blob, Rank rank) {
    auto endpoint = Endpoint::deserialise(blob);
    if (!endpoint.is_ok()) return unreadable(rank, endpoint.status());
    if (endpoint->rank == rank) return endpoint;
    return Status::mismatch(
        rank, concat("the entry of rank ", rank, " contains rank number ", endpoint->rank));
}

/// Endpoints that a rank has before the roster; most ranks have none.
struct Gathered {
    std::vector<Endpoint> endpoints;  // on rank 0: of all ranks
    std::vector<Endpoint> watched;    // of the own subgroup; on rank 0 also the gatherers
};

Result<Gathered> gather_endpoints(Store& store, const Endpoint& mine,
                                  const RendezvousContext& rendezvous) {
    Gathered gathered;
    const auto take = [&](Rank rank, const std::string& blob) -> Status {
        PCCL_ASSIGN_OR_RETURN(gathered.endpoints.emplace_back(), endpoint_in(blob, rank));
        const Rank gatherer = gatherer_of(rank, rendezvous.size);
        if (gatherer == mine.rank || gatherer == rank)
            gathered.watched.push_back(gathered.endpoints.back());
        return Status::ok();
    };
    const TreeGather endpoints{
        .key = kEndpointKey, .longest = kMaxEndpoint, .take = take, .present = [&] {
            return std::span<const Endpoint>(gathered.watched);
        }};
    PCCL_TRY(gather(store, endpoints, {mine.rank, mine.serialise()}, rendezvous));
    return gathered;
}

Result<Roster> publish_roster(Store& store, std::vector<Endpoint> all,
                              const RendezvousContext& rendezvous) {
    Roster roster;
    roster.tuning = rendezvous.tuning;
    roster.costs = rendezvous.costs;
    roster.endpoints = std::move(all);
    if (rendezvous.describe) {
        PCCL_ASSIGN_OR_RETURN(roster.job, rendezvous.describe(roster));
    }
    PCCL_TRY(publish_text(store, kRosterKey, serialise(roster)));
    return roster;
}

Result<Roster> meet(Store& store, const Endpoint& mine, const RendezvousContext& rendezvous) {
    PCCL_ASSIGN_OR_RETURN(Gathered gathered, gather_endpoints(store, mine, rendezvous));
    if (mine.rank == 0) return publish_roster(store, std::move(gathered.endpoints), rendezvous);
    for (Endpoint& root : root_seen_by(mine.rank, rendezvous))
        gathered.watched.push_back(std::move(root));
    PCCL_ASSIGN_OR_RETURN(const std::string text, fetch(store, gathered.watched, rendezvous));
    PCCL_ASSIGN_OR_RETURN(Roster met, parse(text, rendezvous.size));
    PCCL_TRY(check_own_place(met, mine));
    return met;
}

}  // namespace

Roster without(transport::TransportFlags kinds, Roster roster) {
    for (Endpoint& endpoint : roster.endpoints) endpoint.drop(kinds);
    return roster;
}

Result<std::shared_ptr<Store>> pre_join_at(std::shared_ptr<Store> store) {
    if (store == nullptr) return store;
    PCCL_ASSIGN_OR_RETURN(const auto job, job_secret(kPreJoin));
    if (!job) return store;
    return std::shared_ptr<Store>(new SealedStore(std::move(store), *job));
}

std::shared_ptr<Store> group_namespace(std::shared_ptr<Store> pre_join,
                                       const GroupIdentity& identity) {
    if (pre_join == nullptr || process_config().secret_file.empty()) return pre_join;
    return std::make_shared<SealedStore>(std::move(pre_join), identity.secret);
}

Result<GroupIdentity> fresh_identity() {
    GroupIdentity identity;
    PCCL_TRY(sys::fill_random(identity.group));
    PCCL_TRY(sys::fill_random(identity.secret));
    return identity;
}

namespace {

Result<GroupIdentity> share_identity(Store& store, Rank rank, const RendezvousContext& rendezvous) {
    GroupIdentity identity;
    if (rank == 0) {
        PCCL_ASSIGN_OR_RETURN(identity, fresh_identity());
        ByteWriter out;
        out.raw(std::as_bytes(std::span(identity.group)));
        out.raw(std::as_bytes(std::span(identity.secret)));
        PCCL_TRY(store.set(kIdentityKey, out.take()));
        return identity;
    }
    const auto blob = await(store, {kIdentityKey, 0, {}}, rendezvous);
    if (blob.status().code() == StatusCode::kTimeout)
        return Status::timeout("timed out: rank 0 has not joined; is every rank running?", 0);
    PCCL_TRY(blob.status());
    PCCL_TRY(check_unsealed(*blob));
    ByteReader in(*blob);
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(identity.group))));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(identity.secret))));
    PCCL_TRY(in.finish());
    return identity;
}

}  // namespace

Result<GroupIdentity> agree_on_identity(Store& store, Rank rank,
                                        const RendezvousContext& rendezvous) {
    PCCL_ASSIGN_OR_RETURN(GroupIdentity identity, share_identity(store, rank, rendezvous));
    PCCL_ASSIGN_OR_RETURN(const auto job, job_secret(identity.group));
    identity.secret = job.value_or(identity.secret);
    return identity;
}

std::vector<Rank> unpublished(Store& store, int size) {
    return silent_in(store, kEndpointKey, size);
}

Result<bool> has_roster(Store& store) { return has_text(store, kRosterKey); }

void remove_roster(Store& store, Rank self, int size) {
    remove_contribution(store, kEndpointKey, self, size);
    if (self != 0) return;
    remove_text(store, kRosterKey);
    remove_failure(store);
}

Result<Roster> exchange_roster(Store& store, Endpoint mine, const RendezvousContext& rendezvous) {
    std::uint64_t& nonce = mine.nonce;
    if (nonce == 0)
        PCCL_TRY(sys::fill_random({reinterpret_cast<std::uint8_t*>(&nonce), sizeof nonce}));
    auto roster = meet(store, mine, rendezvous);
    const Status status = roster.status();
    if (status.code() == StatusCode::kTimeout && status.peer() == kNoRank)
        return nobody_came(store, rendezvous.size);
    if (status.code() == StatusCode::kInvalidArgument) return unreadable(0, status);
    return roster;
}

}  // namespace pccl::bootstrap
