#include "csrc/comm/roster.h"

#include <span>

#include "csrc/base/bytes.h"
#include "csrc/base/text.h"
#include "csrc/sys/crypto/hmac.h"

namespace pccl::comm {
namespace {

constexpr const char* kIdentityKey = "pccl/identity";
constexpr const char* kRosterKey = "pccl/roster";
constexpr std::size_t kMaxEndpoint = 8 * kKiB;

std::string endpoint_key(Rank rank) { return concat("pccl/endpoint/", rank); }

std::string serialise(const Roster& roster) {
    ByteWriter out;
    out.u32(static_cast<std::uint32_t>(roster.endpoints.size()));
    for (const Endpoint& endpoint : roster.endpoints) out.text(endpoint.serialise());
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
    PCCL_TRY(in.finish());
    return roster;
}

Result<Roster> collect(Store& store, const Endpoint& mine, int size, Deadline deadline) {
    Roster roster;
    roster.endpoints.push_back(mine);
    for (Rank rank = 1; rank < size; ++rank) {
        const auto blob = store.get(endpoint_key(rank), deadline);
        if (!blob.is_ok())
            return blob.status().with_context(concat("rank ", rank, " has not joined"));
        PCCL_ASSIGN_OR_RETURN(roster.endpoints.emplace_back(), Endpoint::deserialise(*blob));
        if (roster.endpoints.back().rank != rank)
            return Status::mismatch(rank, concat("rank ", rank, " says that it is rank ",
                                                 roster.endpoints.back().rank));
    }
    PCCL_TRY(store.set(kRosterKey, serialise(roster)));
    return roster;
}

}  // namespace

Result<GroupIdentity> fresh_identity() {
    GroupIdentity identity;
    PCCL_TRY(sys::fill_random(identity.group));
    PCCL_TRY(sys::fill_random(identity.secret));
    return identity;
}

Result<GroupIdentity> agree_on_identity(Store& store, Rank rank, Deadline deadline) {
    GroupIdentity identity;
    if (rank == 0) {
        PCCL_ASSIGN_OR_RETURN(identity, fresh_identity());
        ByteWriter out;
        out.raw(std::as_bytes(std::span(identity.group)));
        out.raw(std::as_bytes(std::span(identity.secret)));
        PCCL_TRY(store.set(kIdentityKey, out.take()));
        return identity;
    }
    const auto blob = store.get(kIdentityKey, deadline);
    if (!blob.is_ok()) return blob.status().with_context("rank 0 has not joined");
    ByteReader in(*blob);
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(identity.group))));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(identity.secret))));
    PCCL_TRY(in.finish());
    return identity;
}

Result<Roster> exchange_roster(Store& store, const Endpoint& mine, int size, Deadline deadline) {
    if (mine.rank == 0) return collect(store, mine, size, deadline);
    PCCL_TRY(store.set(endpoint_key(mine.rank), mine.serialise()));
    const auto text = store.get(kRosterKey, deadline);
    if (!text.is_ok())
        return text.status().with_context(
            "rank 0 has not gathered the group (a rank may be missing)");
    return parse(*text, size);
}

}  // namespace pccl::comm
