#include "csrc/bootstrap/meeting.h"

#include <algorithm>

#include "csrc/base/bytes.h"
#include "csrc/base/text.h"
#include "csrc/bootstrap/rendezvous/sealed_store.h"

namespace pccl::bootstrap {
namespace {

constexpr const char* kFailureKey = "pccl/failure";
constexpr Rank kMostKnocks = 16;  // in one look
constexpr std::size_t kLongestText = 4 * kKiB;
constexpr std::size_t kPartBytes = 32 * kKiB;

std::string part_key(const std::string& key, std::size_t part) { return concat(key, "/", part); }

std::string presence_key(Rank rank) { return concat("pccl/presence/", rank); }

Store& lobby_of(const Meeting& meeting, Store& store) {
    return meeting.lobby ? *meeting.lobby : store;
}

/// Knocks at ranks that have announced themselves and not come since.
Status look_for_ended(Store& lobby, const Awaiting& what, const Meeting& meeting) {
    if (!meeting.probe) return Status::ok();
    const Rank last = std::min(what.until, what.from + kMostKnocks);
    for (Rank rank = what.from; rank < last; ++rank) {
        const auto endpoint = announced(lobby, rank);
        if (endpoint.is_ok()) PCCL_TRY(meeting.probe(*endpoint));
    }
    return Status::ok();
}

Status look_for_lost(Store& lobby, const Awaiting& what, const Meeting& meeting) {
    PCCL_TRY(look_for_ended(lobby, what, meeting));
    return meeting.lost ? meeting.lost(what.present, what.from) : Status::ok();
}

}  // namespace

Status announce(Store& store, const Endpoint& mine) {
    return store.set(presence_key(mine.rank), mine.serialise());
}

Result<Endpoint> announced(Store& store, Rank rank) {
    PCCL_ASSIGN_OR_RETURN(const std::string blob,
                          store.get(presence_key(rank), Deadline::after(Duration::zero())));
    PCCL_ASSIGN_OR_RETURN(Endpoint endpoint, Endpoint::deserialise(blob));
    if (endpoint.rank != rank) return Status::invalid_argument("the presence of another rank");
    return endpoint;
}

Status failure_in(Store& store) {
    const auto blob = store.get(kFailureKey, Deadline::after(Duration::zero()));
    // One that does not prove the job's secret (SealedStore) tells of a rank that has another.
    if (blob.status().code() == StatusCode::kInvalidArgument) return blob.status();
    if (!blob.is_ok()) return Status::ok();
    PCCL_TRY(check_unsealed(*blob));
    ByteReader in(*blob);
    Status failure;
    PCCL_TRY(in.status(failure, kLongestText));
    return failure;
}

Status agree_on_failure(Store& store, const Status& why, Rank self) {
    const bool is_own = why.code() == StatusCode::kResourceExhausted ||
                        why.code() == StatusCode::kUnavailable ||
                        why.code() == StatusCode::kAborted;
    if (Status first = failure_in(store); !first.is_ok()) return is_own ? why : first;
    const Status told =
        is_own ? Status::peer_lost(self, concat("rank ", self, " cannot join: ", why.message()))
               : why;
    ByteWriter out;
    out.status(told, kLongestText);
    // Who can no longer reach the store has nothing to tell through it.
    static_cast<void>(store.set(kFailureKey, out.take()));
    return why;
}

Result<std::string> await(Store& store, const Awaiting& what, const Meeting& meeting) {
    Store& lobby = lobby_of(meeting, store);
    for (;;) {
        const bool last = meeting.deadline.remaining() <= kStoreSlice;
        auto value = store.get(what.key, last ? meeting.deadline : Deadline::after(kStoreSlice));
        if (value.status().code() != StatusCode::kTimeout || meeting.deadline.passed())
            return value;
        PCCL_TRY(failure_in(lobby));
        const Status lost = look_for_lost(lobby, what, meeting);
        if (lost.is_ok()) continue;
        // What it told before it left still counts.
        if (lost.code() == StatusCode::kPeerLost)
            value = store.get(what.key, Deadline::after(Duration::zero()));
        if (value.is_ok()) return value;
        return lost;
    }
}

/// The first part is published last, so that whoever finds it finds them all.
Status publish_text(Store& store, const std::string& key, const std::string& text) {
    ByteWriter first;
    first.u32(static_cast<std::uint32_t>(text.size()));
    first.text(std::string_view(text).substr(0, kPartBytes));
    for (std::size_t part = 1; part * kPartBytes < text.size(); ++part)
        PCCL_TRY(store.set(part_key(key, part), text.substr(part * kPartBytes, kPartBytes)));
    return store.set(part_key(key, 0), first.take());
}

Result<std::string> await_text(Store& store, const Awaiting& what, std::size_t most,
                               const Meeting& meeting) {
    const auto await_part = [&](std::size_t part) {
        return await(store, {part_key(what.key, part), what.from, what.present, what.until},
                     meeting);
    };
    PCCL_ASSIGN_OR_RETURN(const std::string first, await_part(0));
    ByteReader in(first);
    std::uint32_t bytes = 0;
    std::string text;
    PCCL_TRY(in.u32(bytes));
    PCCL_TRY(in.text(text, kPartBytes));
    if (bytes > most)
        return Status::invalid_argument(
            concat("a text of ", bytes, " bytes is too long: at most ", most));
    for (std::size_t part = 1; text.size() < bytes; ++part) {
        PCCL_ASSIGN_OR_RETURN(const std::string more, await_part(part));
        if (more.empty()) return Status::invalid_argument("a text that ends early");
        text += more;
    }
    if (text.size() != bytes) return Status::invalid_argument("a text longer than it says");
    return text;
}

bool has_text(Store& store, const std::string& key) {
    return store.get(part_key(key, 0), Deadline::after(Duration::zero())).is_ok();
}

}  // namespace pccl::bootstrap
