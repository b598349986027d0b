#include "csrc/comm/roster.h"

#include <span>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/config.h"
#include "csrc/base/text.h"
#include "csrc/comm/secret_file.h"
#include "csrc/comm/tuning.h"
#include "csrc/sys/crypto/hmac.h"

namespace pccl::comm {
namespace {

constexpr const char* kIdentityKey = "pccl/identity";
// A store's values are bounded: the roster of a large group takes several.
constexpr std::size_t kPartBytes = 32 * kKiB;
constexpr std::size_t kMaxEndpoint = 8 * kKiB;

std::string roster_key(std::size_t part) { return concat("pccl/roster/", part); }

/// The first part is published last, so that whoever finds it finds them all.
Status publish(Store& store, const std::string& roster) {
    ByteWriter first;
    first.u32(static_cast<std::uint32_t>(roster.size()));
    first.text(std::string_view(roster).substr(0, kPartBytes));
    for (std::size_t part = 1; part * kPartBytes < roster.size(); ++part)
        PCCL_TRY(store.set(roster_key(part), roster.substr(part * kPartBytes, kPartBytes)));
    return store.set(roster_key(0), first.take());
}

Result<std::string> fetch(Store& store, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const std::string first, store.get(roster_key(0), deadline));
    ByteReader in(first);
    std::uint32_t bytes = 0;
    std::string roster;
    PCCL_TRY(in.u32(bytes));
    PCCL_TRY(in.text(roster, kPartBytes));
    for (std::size_t part = 1; part * kPartBytes < bytes; ++part) {
        PCCL_ASSIGN_OR_RETURN(const std::string next, store.get(roster_key(part), deadline));
        roster += next;
    }
    if (roster.size() == bytes) return roster;
    return Status::invalid_argument(
        concat("the roster has ", roster.size(), " bytes, not ", bytes));
}

std::string endpoint_key(Rank rank) { return concat("pccl/endpoint/", rank); }

std::string serialise(const Roster& roster) {
    ByteWriter out;
    out.u32(static_cast<std::uint32_t>(roster.endpoints.size()));
    for (const Endpoint& endpoint : roster.endpoints) out.text(endpoint.serialise());
    out.text(roster.tuning);
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
    PCCL_TRY(in.text(roster.tuning, Tuning::kMostBytes));
    PCCL_TRY(in.finish());
    return roster;
}

Result<Roster> collect(Store& store, const Endpoint& mine, int size, std::string tuning,
                       Deadline deadline) {
    Roster roster;
    roster.tuning = std::move(tuning);
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
    PCCL_TRY(publish(store, serialise(roster)));
    return roster;
}

}  // namespace

Result<GroupIdentity> fresh_identity() {
    GroupIdentity identity;
    PCCL_TRY(sys::fill_random(identity.group));
    PCCL_TRY(sys::fill_random(identity.secret));
    return identity;
}

namespace {

Result<GroupIdentity> share_identity(Store& store, Rank rank, Deadline deadline) {
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

}  // namespace

Result<GroupIdentity> agree_on_identity(Store& store, Rank rank, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(GroupIdentity identity, share_identity(store, rank, deadline));
    const std::string& file = process_config().secret_file;
    if (!file.empty()) {
        PCCL_ASSIGN_OR_RETURN(identity.secret, secret_from_file(file, identity.group));
    }
    return identity;
}

Result<Roster> exchange_roster(Store& store, const Endpoint& mine, int size, std::string tuning,
                               Deadline deadline) {
    if (mine.rank == 0) return collect(store, mine, size, std::move(tuning), deadline);
    PCCL_TRY(store.set(endpoint_key(mine.rank), mine.serialise()));
    const auto text = fetch(store, deadline);
    if (!text.is_ok())
        return text.status().with_context(
            "rank 0 has not gathered the group (a rank may be missing)");
    return parse(*text, size);
}

}  // namespace pccl::comm
