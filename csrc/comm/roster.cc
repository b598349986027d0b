#include "csrc/comm/roster.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "csrc/base/bytes.h"
#include "csrc/base/text.h"


namespace pccl::comm {
namespace {

constexpr const char* kRosterKey = "pccl/roster";
constexpr std::size_t kMaxEndpoint = 8 * kKiB;

std::string endpoint_key(Rank rank) { return concat("pccl/endpoint/", rank); }

std::string serialize(const Roster& roster) {
    Writer out;
    out.raw(std::as_bytes(std::span(roster.group)));
    out.raw(std::as_bytes(std::span(roster.secret)));
    out.u32(static_cast<std::uint32_t>(roster.endpoints.size()));
    for (const Endpoint& endpoint : roster.endpoints) out.string(endpoint.serialize());
    return out.take();
}

Result<Roster> parse(const std::string& text, int size) {
    Reader in(text);
    Roster roster;
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(roster.group))));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(roster.secret))));
    PCCL_ASSIGN_OR_RETURN(const std::uint32_t count, in.u32());
    if (count != static_cast<std::uint32_t>(size))
        return Status::mismatch(0, concat("rank 0 made a group of ", count, " ranks, this rank one of ", size));
    for (std::uint32_t i = 0; i < count; ++i) {
        PCCL_ASSIGN_OR_RETURN(const std::string blob, in.string(kMaxEndpoint));
        PCCL_ASSIGN_OR_RETURN(roster.endpoints.emplace_back(), Endpoint::deserialize(blob));
    }
    PCCL_TRY(in.expect_end());
    return roster;
}

Result<Roster> collect(Store& store, const Endpoint& mine, int size, Deadline deadline) {
    Roster roster;
    PCCL_TRY(fill_random(std::as_writable_bytes(std::span(roster.group))));
    PCCL_TRY(fill_random(std::as_writable_bytes(std::span(roster.secret))));
    roster.endpoints.push_back(mine);
    for (Rank rank = 1; rank < size; ++rank) {
        const auto blob = store.get(endpoint_key(rank), deadline);
        if (!blob.is_ok())
            return blob.status().with_context(concat("rank ", rank, " has not joined"));
        PCCL_ASSIGN_OR_RETURN(roster.endpoints.emplace_back(), Endpoint::deserialize(*blob));
        if (roster.endpoints.back().rank != rank)
            return Status::mismatch(rank, concat("rank ", rank, " says that it is rank ",
                                                 roster.endpoints.back().rank));
    }
    PCCL_TRY(store.set(kRosterKey, serialize(roster)));
    return roster;
}

}  // namespace

Status fill_random(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0 && errno != EINTR) return Status::from_errno(errno, "cannot get random bytes");
        if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return Status::ok();
}

Result<Roster> exchange_roster(Store& store, const Endpoint& mine, int size, Deadline deadline) {
    if (mine.rank == 0) return collect(store, mine, size, deadline);
    PCCL_TRY(store.set(endpoint_key(mine.rank), mine.serialize()));
    const auto text = store.get(kRosterKey, deadline);
    if (!text.is_ok())
        return text.status().with_context("rank 0 has not gathered the group (a rank may be missing)");
    return parse(*text, size);
}

}  // namespace pccl::comm
