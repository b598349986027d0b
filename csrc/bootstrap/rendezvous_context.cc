// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous_context.h"

#include <algorithm>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/sealed_store.h"

namespace pccl::bootstrap {
namespace {

constexpr const char* kFailureKey = "failure";
constexpr std::string_view kSuperseded = "another incarnation of the group has been opened";
constexpr Rank kMostKnocks = 16;  // per check
constexpr std::size_t kLongestText = 4 * kKiB;
constexpr std::size_t kPartBytes = 32 * kKiB;
constexpr std::size_t kLongestToRemove = 128 * kMiB;
constexpr Duration kShortestSlice = std::chrono::milliseconds(200);
constexpr Duration kLongestSlice = std::chrono::seconds(3);
constexpr int kRanksOfShortestSlice = 256;

std::string part_key(const std::string& key, std::size_t part) { return concat(key, "/", part); }

Store& pre_join_of(const RendezvousContext& rendezvous, Store& store) {
    return rendezvous.pre_join ? *rendezvous.pre_join : store;
}

bool counts(const RendezvousContext& rendezvous, const Announcement& other) {
    return rendezvous.contemporaries == nullptr || rendezvous.contemporaries->counts(other);
}

/// Checks a rank that has announced itself.
Status look_at(const Announcement& other, const RendezvousContext& rendezvous) {
    if (rendezvous.contemporaries)
        rendezvous.contemporaries->note(other.endpoint.rank, other.endpoint.nonce);
    if (!other.failure.is_ok()) return counts(rendezvous, other) ? other.failure : Status::ok();
    if (!rendezvous.probe) return Status::ok();
    const Status end = rendezvous.probe(other.endpoint);
    if (end.is_ok() && rendezvous.contemporaries) rendezvous.contemporaries->saw_alive(other);
    return end.is_ok() || counts(rendezvous, other) ? end : Status::ok();
}

/// Returns the error of an unusable announcement, or ok for one of another attempt.
Status judged(Store& pre_join, Rank rank, const Status& unusable,
              const RendezvousContext& rendezvous) {
    const auto other = unproven_announcement(pre_join, rank);
    return other.is_ok() && counts(rendezvous, *other) ? unusable : Status::ok();
}

/// Checks the ranks that have announced themselves but have not joined since.
Status look_for_ended(Store& pre_join, const Awaiting& what, const RendezvousContext& rendezvous) {
    const Rank last = std::min(what.until, what.from + kMostKnocks);
    for (Rank rank = what.from; rank < last; ++rank) {
        const auto other = announced(pre_join, rank);
        if (other.is_ok()) {
            PCCL_TRY(look_at(*other, rendezvous));
        } else if (other.status().code() == StatusCode::kInvalidArgument) {
            PCCL_TRY(judged(pre_join, rank, other.status(), rendezvous));
        } else if (rendezvous.contemporaries) {
            rendezvous.contemporaries->note(rank, 0);
        }
    }
    return Status::ok();
}

/// Returns whether failures in the awaited incarnation concern this rank.
bool is_concerned(const RendezvousContext& rendezvous) {
    return rendezvous.incarnation == nullptr || rendezvous.incarnation->counts();
}

/// Runs all checks between two slices of a wait.
Status look_around(Store& store, const Awaiting& what, const RendezvousContext& rendezvous) {
    if (rendezvous.incarnation) PCCL_TRY(rendezvous.incarnation->check_current());
    if (is_concerned(rendezvous)) PCCL_TRY(failure_in(store));
    return look_for_lost(pre_join_of(rendezvous, store), what, rendezvous);
}

/// Returns whether the rank itself lacks a resource.
bool is_own_lack(const Status& why) {
    return why.code() == StatusCode::kResourceExhausted || why.code() == StatusCode::kUnavailable ||
           why.code() == StatusCode::kAborted;
}

}  // namespace

Duration store_slice(int size) {
    return std::clamp<Duration>(kShortestSlice * size / kRanksOfShortestSlice, kShortestSlice,
                                kLongestSlice);
}

Status superseded() { return Status::aborted(std::string(kSuperseded)); }

bool is_superseded(const Status& status) {
    return status.code() == StatusCode::kAborted && status.message() == kSuperseded;
}

Status look_for_lost(Store& pre_join, const Awaiting& what, const RendezvousContext& rendezvous) {
    PCCL_TRY(look_for_ended(pre_join, what, rendezvous));
    return rendezvous.lost ? rendezvous.lost(what.present, what.from) : Status::ok();
}

Status failure_in(Store& store) {
    const auto blob = store.get(kFailureKey, Deadline::after(Duration::zero()));
    // An entry that does not prove the job's secret (SealedStore) comes from a rank with another
    // secret.
    if (blob.status().code() == StatusCode::kInvalidArgument) return blob.status();
    if (!blob.is_ok()) return Status::ok();
    PCCL_TRY(check_unsealed(*blob));
    ByteReader in(*blob);
    Status failure;
    PCCL_TRY(in.status(failure, kLongestText));
    return failure;
}

void remove_failure(Store& store) { static_cast<void>(store.remove(kFailureKey)); }

Status as_reported(const Status& why, Rank self) {
    if (!is_own_lack(why)) return why;
    return Status::peer_lost(self, concat("rank ", self, " cannot join: ", why.message()));
}

Status agree_on_failure(Store& store, const Status& why, Rank self) {
    if (Status first = failure_in(store); !first.is_ok()) return is_own_lack(why) ? why : first;
    ByteWriter out;
    out.status(as_reported(why, self), kLongestText);
    // A rank that cannot reach the store any more cannot publish its error either.
    static_cast<void>(store.set(kFailureKey, out.take()));
    return why;
}

Result<std::string> await(Store& store, const Awaiting& what, const RendezvousContext& rendezvous) {
    const Duration slice = store_slice(rendezvous.size);
    for (;;) {
        const bool last = rendezvous.deadline.remaining() <= slice;
        auto value = store.get(what.key, last ? rendezvous.deadline : Deadline::after(slice));
        if (value.status().code() != StatusCode::kTimeout || rendezvous.deadline.passed())
            return value;
        const Status lost = look_around(store, what, rendezvous);
        if (lost.is_ok()) continue;
        // A value that the rank published before it left, or opened another incarnation, still
        // counts.
        if (lost.code() == StatusCode::kPeerLost || is_superseded(lost))
            value = store.get(what.key, Deadline::after(Duration::zero()));
        if (value.is_ok()) return value;
        return lost;
    }
}

/// Publishes the first part last, so that a reader that finds it finds all parts.
Status publish_text(Store& store, const std::string& key, const std::string& text) {
    ByteWriter first;
    first.u32(static_cast<std::uint32_t>(text.size()));
    first.text(std::string_view(text).substr(0, kPartBytes));
    for (std::size_t part = 1; part * kPartBytes < text.size(); ++part)
        PCCL_TRY(store.set(part_key(key, part), text.substr(part * kPartBytes, kPartBytes)));
    return store.set(part_key(key, 0), first.take());
}

Result<std::string> await_text(Store& store, const Awaiting& what, std::size_t most,
                               const RendezvousContext& rendezvous) {
    const auto await_part = [&](std::size_t part) {
        return await(store, {part_key(what.key, part), what.from, what.present, what.until},
                     rendezvous);
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
    if (text.size() != bytes)
        return Status::invalid_argument("a text is longer than its stated length");
    return text;
}

Result<bool> has_text(Store& store, const std::string& key) {
    const Status found = store.get(part_key(key, 0), Deadline::after(Duration::zero())).status();
    const bool is_none =
        found.code() == StatusCode::kTimeout || found.code() == StatusCode::kInvalidArgument;
    if (found.is_ok() || is_none) return found.is_ok();
    return found;
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
