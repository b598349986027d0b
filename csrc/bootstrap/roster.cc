#include "csrc/bootstrap/roster.h"

#include <span>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/config.h"
#include "csrc/base/listed.h"
#include "csrc/base/text.h"
#include "csrc/bootstrap/rendezvous/sealed_store.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/sys/crypto/hmac.h"

namespace pccl::bootstrap {
namespace {

constexpr const char* kIdentityKey = "pccl/identity";
constexpr const char* kRosterKey = "pccl/roster";
constexpr transport::GroupId kLobby{'p', 'c', 'c', 'l', ' ', 'l', 'o', 'b', 'b', 'y'};
constexpr Rank kMostNamed = 16;
constexpr std::size_t kMaxEndpoint = 8 * kKiB;

std::string endpoint_key(Rank rank) { return concat("pccl/endpoint/", rank); }

}  // namespace

std::vector<Rank> unpublished(Store& store, int size) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < size && static_cast<Rank>(ranks.size()) < kMostNamed; ++rank)
        if (!store.get(endpoint_key(rank), Deadline::after(Duration::zero())).is_ok())
            ranks.push_back(rank);
    return ranks;
}

namespace {

Status nobody_came(Store& store, int size) {
    const std::vector<Rank> ranks = unpublished(store, size);
    if (ranks.empty())
        return Status::timeout("timed out: rank 0 has not gathered the group; is it stopped?", 0);
    return Status::timeout(concat("timed out: ", listed(ranks), ranks.size() > 1 ? " have" : " has",
                                  " not joined; is every rank running?"),
                           ranks.front());
}

Status nonsense(Rank rank, const Status& why) {
    return Status::peer_lost(
        rank, concat("rank ", rank, " publishes what cannot be read: ", why.message()));
}

Result<std::string> fetch(Store& store, const Meeting& meeting) {
    std::vector<Endpoint> root;
    if (auto blob = store.get(endpoint_key(0), Deadline::after(kStoreSlice)); blob.is_ok())
        if (auto endpoint = Endpoint::deserialise(*blob); endpoint.is_ok())
            root.push_back(std::move(*endpoint));
    const std::size_t most = static_cast<std::size_t>(meeting.size) * (kMaxEndpoint + 4) +
                             kMostTuningBytes + kMostCostsBytes + kMostJobBytes + 16;
    return await_text(store, {kRosterKey, 0, root}, most, meeting);
}

std::string serialise(const Roster& roster) {
    ByteWriter out;
    out.u32(static_cast<std::uint32_t>(roster.endpoints.size()));
    for (const Endpoint& endpoint : roster.endpoints) out.text(endpoint.serialise());
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
    for (std::uint32_t i = 0; i < count; ++i) {
        std::string blob;
        PCCL_TRY(in.text(blob, kMaxEndpoint));
        PCCL_ASSIGN_OR_RETURN(roster.endpoints.emplace_back(), Endpoint::deserialise(blob));
    }
    PCCL_TRY(in.text(roster.tuning, kMostTuningBytes));
    PCCL_TRY(in.text(roster.costs, kMostCostsBytes));
    PCCL_TRY(in.text(roster.job, kMostJobBytes));
    PCCL_TRY(in.finish());
    return roster;
}

/// Rank 0 answers to what this process has published just now, and to no other.
Status check_own_place(const Roster& roster, const Endpoint& mine) {
    const Endpoint& other = roster.endpoints[static_cast<std::size_t>(mine.rank)];
    if (other.nonce == mine.nonce) return Status::ok();
    return Status::mismatch(
        mine.rank, concat("the group has another process as this rank: ", other.to_string(),
                          "; give each process a rank of its own, and each group a fresh store"));
}

Result<Endpoint> endpoint_of(Store& store, Rank rank, const Meeting& meeting,
                             std::span<const Endpoint> present) {
    const auto blob = await(store, {endpoint_key(rank), rank, present, meeting.size}, meeting);
    if (blob.status().code() == StatusCode::kInvalidArgument) return nonsense(rank, blob.status());
    PCCL_TRY(blob.status());
    auto endpoint = Endpoint::deserialise(*blob);
    if (!endpoint.is_ok()) return nonsense(rank, endpoint.status());
    if (endpoint->rank == rank) return endpoint;
    return Status::mismatch(rank, concat("rank ", rank, " says that it is rank ", endpoint->rank));
}

Result<Roster> collect(Store& store, const Endpoint& mine, const Meeting& meeting) {
    Roster roster;
    roster.tuning = meeting.tuning;
    roster.costs = meeting.costs;
    roster.endpoints.push_back(mine);
    for (Rank rank = 1; rank < meeting.size; ++rank) {
        PCCL_ASSIGN_OR_RETURN(roster.endpoints.emplace_back(),
                              endpoint_of(store, rank, meeting, roster.endpoints));
    }
    if (meeting.describe) {
        PCCL_ASSIGN_OR_RETURN(roster.job, meeting.describe(roster));
    }
    PCCL_TRY(publish_text(store, kRosterKey, serialise(roster)));
    return roster;
}

}  // namespace

Result<std::shared_ptr<Store>> lobby_at(std::shared_ptr<Store> store) {
    if (store == nullptr) return store;
    PCCL_ASSIGN_OR_RETURN(const auto job, job_secret(kLobby));
    if (!job) return store;
    return std::shared_ptr<Store>(new SealedStore(std::move(store), *job));
}

std::shared_ptr<Store> room_at(std::shared_ptr<Store> lobby, const GroupIdentity& identity) {
    if (lobby == nullptr || process_config().secret_file.empty()) return lobby;
    return std::make_shared<SealedStore>(std::move(lobby), identity.secret);
}

Result<GroupIdentity> fresh_identity() {
    GroupIdentity identity;
    PCCL_TRY(sys::fill_random(identity.group));
    PCCL_TRY(sys::fill_random(identity.secret));
    return identity;
}

namespace {

Result<GroupIdentity> share_identity(Store& store, Rank rank, const Meeting& meeting) {
    GroupIdentity identity;
    if (rank == 0) {
        PCCL_ASSIGN_OR_RETURN(identity, fresh_identity());
        ByteWriter out;
        out.raw(std::as_bytes(std::span(identity.group)));
        out.raw(std::as_bytes(std::span(identity.secret)));
        PCCL_TRY(store.set(kIdentityKey, out.take()));
        return identity;
    }
    const auto blob = await(store, {kIdentityKey, 0, {}}, meeting);
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

Result<GroupIdentity> agree_on_identity(Store& store, Rank rank, const Meeting& meeting) {
    PCCL_ASSIGN_OR_RETURN(GroupIdentity identity, share_identity(store, rank, meeting));
    PCCL_ASSIGN_OR_RETURN(const auto job, job_secret(identity.group));
    identity.secret = job.value_or(identity.secret);
    return identity;
}

Result<Roster> exchange_roster(Store& store, Endpoint mine, const Meeting& meeting) {
    PCCL_TRY(sys::fill_random({reinterpret_cast<std::uint8_t*>(&mine.nonce), sizeof mine.nonce}));
    PCCL_TRY(store.set(endpoint_key(mine.rank), mine.serialise()));
    auto roster = [&]() -> Result<Roster> {
        if (mine.rank == 0) return collect(store, mine, meeting);
        PCCL_ASSIGN_OR_RETURN(const std::string text, fetch(store, meeting));
        PCCL_ASSIGN_OR_RETURN(Roster met, parse(text, meeting.size));
        PCCL_TRY(check_own_place(met, mine));
        return met;
    }();
    const Status status = roster.status();
    if (status.code() == StatusCode::kTimeout && status.peer() == kNoRank)
        return nobody_came(store, meeting.size);
    if (status.code() == StatusCode::kInvalidArgument) return nonsense(0, status);
    return roster;
}

}  // namespace pccl::bootstrap
