// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/tree_gather.h"

#include <algorithm>
#include <cmath>

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::bootstrap {
namespace {

constexpr Rank kMostNamed = 16;
// With at most this many ranks, the tree costs more than it saves.
constexpr int kSmallestGroup = 16;

std::string word_key(const std::string& key, Rank rank) { return concat(key, "/", rank); }
std::string group_key(const std::string& key, Rank gatherer) {
    return concat(key, "/by/", gatherer);
}

int ranks_in_group(int size) {
    return std::max(kSmallestGroup, static_cast<int>(std::ceil(std::sqrt(size))));
}

Rank end_of_group(Rank gatherer, int size) {
    return std::min(gatherer + ranks_in_group(size), size);
}

Status blamed(Rank rank, const Status& why) {
    return why.code() == StatusCode::kInvalidArgument ? unreadable(rank, why) : why;
}

/// Returns the texts of a gatherer's own subgroup, in the form that it forwards.
Result<std::string> receive_group(Store& store, const TreeGather& what, const Contribution& own,
                                  const RendezvousContext& rendezvous) {
    const Rank end = end_of_group(own.self, rendezvous.size);
    // Rank 0 waits for all other ranks in turn, so it checks the later ones, too.
    const Rank until = own.self == 0 ? rendezvous.size : end;
    ByteWriter received;
    for (Rank rank = own.self; rank < end; ++rank) {
        const auto contribution =
            rank == own.self
                ? Result<std::string>(own.text)
                : await(store, {word_key(what.key, rank), rank, what.present(), until}, rendezvous);
        if (!contribution.is_ok()) return blamed(rank, contribution.status());
        PCCL_TRY(what.take(rank, *contribution));
        received.text(*contribution);
    }
    return received.take();
}

Status take_all(const TreeGather& what, const std::string& text, Rank gatherer, Rank end) {
    ByteReader in(text);
    for (Rank rank = gatherer; rank < end; ++rank) {
        std::string contribution;
        if (const Status read = in.text(contribution, what.longest); !read.is_ok())
            return unreadable(gatherer, read);
        PCCL_TRY(what.take(rank, contribution));
    }
    return blamed(gatherer, in.finish());
}

Status receive_gatherer(Store& store, const TreeGather& what, Rank gatherer,
                        const RendezvousContext& rendezvous) {
    const Rank end = end_of_group(gatherer, rendezvous.size);
    const std::size_t most = static_cast<std::size_t>(end - gatherer) * (what.longest + 4);
    const auto text = await_text(
        store, {group_key(what.key, gatherer), gatherer, what.present(), rendezvous.size}, most,
        rendezvous);
    return text.is_ok() ? take_all(what, *text, gatherer, end) : blamed(gatherer, text.status());
}

}  // namespace

Rank gatherer_of(Rank rank, int size) { return rank - rank % ranks_in_group(size); }

Status gather(Store& store, const TreeGather& what, const Contribution& own,
              const RendezvousContext& rendezvous) {
    PCCL_TRY(store.set(word_key(what.key, own.self), own.text));
    if (gatherer_of(own.self, rendezvous.size) != own.self) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const std::string received, receive_group(store, what, own, rendezvous));
    if (own.self != 0) return publish_text(store, group_key(what.key, own.self), received);
    for (Rank gatherer = end_of_group(0, rendezvous.size); gatherer < rendezvous.size;
         gatherer = end_of_group(gatherer, rendezvous.size))
        PCCL_TRY(receive_gatherer(store, what, gatherer, rendezvous));
    return Status::ok();
}

std::vector<Rank> silent_in(Store& store, const std::string& key, int size) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < size && static_cast<Rank>(ranks.size()) < kMostNamed; ++rank)
        if (!store.get(word_key(key, rank), Deadline::after(Duration::zero())).is_ok())
            ranks.push_back(rank);
    return ranks;
}

Rank idle_gatherer_in(Store& store, const std::string& key, int size) {
    for (Rank gatherer = end_of_group(0, size); gatherer < size;
         gatherer = end_of_group(gatherer, size))
        if (const auto has = has_text(store, group_key(key, gatherer)); !has.is_ok() || !*has)
            return gatherer;
    return 0;
}

void remove_contribution(Store& store, const std::string& key, Rank self, int size) {
    static_cast<void>(store.remove(word_key(key, self)));
    if (self != 0 && gatherer_of(self, size) == self) remove_text(store, group_key(key, self));
}

Status unreadable(Rank rank, const Status& why) {
    return Status::peer_lost(
        rank, concat("rank ", rank, " publishes an entry that cannot be read: ", why.message()));
}

}  // namespace pccl::bootstrap
