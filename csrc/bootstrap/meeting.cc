#include "csrc/bootstrap/meeting.h"

#include <algorithm>

#include "csrc/base/bytes.h"
#include "csrc/base/text.h"
#include "csrc/bootstrap/rendezvous/sealed_store.h"

namespace pccl::bootstrap {
namespace {

constexpr const char* kFailureKey = "failure";
constexpr std::string_view kSuperseded = "another incarnation of the group has been opened";
constexpr Rank kMostKnocks = 16;  // in one look
constexpr std::size_t kLongestText = 4 * kKiB;
constexpr std::size_t kPartBytes = 32 * kKiB;
constexpr std::size_t kLongestToRemove = 128 * kMiB;

std::string part_key(const std::string& key, std::size_t part) { return concat(key, "/", part); }

Store& lobby_of(const Meeting& meeting, Store& store) {
    return meeting.lobby ? *meeting.lobby : store;
}

bool counts(const Meeting& meeting, const Announcement& other) {
    return meeting.contemporaries == nullptr || meeting.contemporaries->counts(other);
}

/// Knocks at a rank that has announced itself.
Status look_at(const Announcement& other, const Meeting& meeting) {
    if (meeting.contemporaries)
        meeting.contemporaries->note(other.endpoint.rank, other.endpoint.nonce);
    if (!other.failure.is_ok()) return counts(meeting, other) ? other.failure : Status::ok();
    if (!meeting.probe) return Status::ok();
    const Status end = meeting.probe(other.endpoint);
    if (end.is_ok() && meeting.contemporaries) meeting.contemporaries->saw_alive(other);
    return end.is_ok() || counts(meeting, other) ? end : Status::ok();
}

/// Why an announcement cannot be used, unless it is of another time.
Status judged(Store& lobby, Rank rank, const Status& unusable, const Meeting& meeting) {
    const auto other = unproven_announcement(lobby, rank);
    return other.is_ok() && counts(meeting, *other) ? unusable : Status::ok();
}

/// Of ranks that have announced themselves and not come since.
Status look_for_ended(Store& lobby, const Awaiting& what, const Meeting& meeting) {
    const Rank last = std::min(what.until, what.from + kMostKnocks);
    for (Rank rank = what.from; rank < last; ++rank) {
        const auto other = announced(lobby, rank);
        if (other.is_ok()) {
            PCCL_TRY(look_at(*other, meeting));
        } else if (other.status().code() == StatusCode::kInvalidArgument) {
            PCCL_TRY(judged(lobby, rank, other.status(), meeting));
        } else if (meeting.contemporaries) {
            meeting.contemporaries->note(rank, 0);
        }
    }
    return Status::ok();
}

/// Whether what failed in the incarnation that this rank waits in concerns it.
bool is_concerned(const Meeting& meeting) {
    return meeting.incarnation == nullptr || meeting.incarnation->counts();
}

/// Between two looks at what is awaited.
Status look_around(Store& store, const Awaiting& what, const Meeting& meeting) {
    if (meeting.incarnation) PCCL_TRY(meeting.incarnation->check_current());
    if (is_concerned(meeting)) PCCL_TRY(failure_in(store));
    return look_for_lost(lobby_of(meeting, store), what, meeting);
}

/// What a rank lacks itself.
bool is_own_lack(const Status& why) {
    return why.code() == StatusCode::kResourceExhausted || why.code() == StatusCode::kUnavailable ||
           why.code() == StatusCode::kAborted;
}

}  // namespace

Status superseded() { return Status::aborted(std::string(kSuperseded)); }

bool is_superseded(const Status& status) {
    return status.code() == StatusCode::kAborted && status.message() == kSuperseded;
}

Status look_for_lost(Store& lobby, const Awaiting& what, const Meeting& meeting) {
    PCCL_TRY(look_for_ended(lobby, what, meeting));
    return meeting.lost ? meeting.lost(what.present, what.from) : Status::ok();
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

void remove_failure(Store& store) { static_cast<void>(store.remove(kFailureKey)); }

Status as_told(const Status& why, Rank self) {
    if (!is_own_lack(why)) return why;
    return Status::peer_lost(self, concat("rank ", self, " cannot join: ", why.message()));
}

Status agree_on_failure(Store& store, const Status& why, Rank self) {
    if (Status first = failure_in(store); !first.is_ok()) return is_own_lack(why) ? why : first;
    ByteWriter out;
    out.status(as_told(why, self), kLongestText);
    // Who can no longer reach the store has nothing to tell through it.
    static_cast<void>(store.set(kFailureKey, out.take()));
    return why;
}

Result<std::string> await(Store& store, const Awaiting& what, const Meeting& meeting) {
    for (;;) {
        const bool last = meeting.deadline.remaining() <= kStoreSlice;
        auto value = store.get(what.key, last ? meeting.deadline : Deadline::after(kStoreSlice));
        if (value.status().code() != StatusCode::kTimeout || meeting.deadline.passed())
            return value;
        const Status lost = look_around(store, what, meeting);
        if (lost.is_ok()) continue;
        // What it told before it left, or opened another incarnation, still counts.
        if (lost.code() == StatusCode::kPeerLost || is_superseded(lost))
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

void remove_text(Store& store, const std::string& key) {
    const auto first = store.get(part_key(key, 0), Deadline::after(Duration::zero()));
    if (!first.is_ok()) return;
    ByteReader in(*first);
    std::uint32_t bytes = 0;
    if (!in.u32(bytes).is_ok() || bytes > kLongestToRemove) return;
    for (std::size_t part = 0; part == 0 || part * kPartBytes < bytes; ++part)
        static_cast<void>(store.remove(part_key(key, part)));
}

}  // namespace pccl::bootstrap
