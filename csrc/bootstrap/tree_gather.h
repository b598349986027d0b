// SPDX-License-Identifier: Apache-2.0

// Gather of one text per rank to rank 0 through the store. The ranks form subgroups of about the
// square root of their number. The first rank of a subgroup, its gatherer, publishes the texts of
// the subgroup as one, so that no rank awaits more than about 2 sqrt(n) entries.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "csrc/bootstrap/rendezvous_context.h"

namespace pccl::bootstrap {

struct TreeGather {
    std::string key;          // rank 3 publishes under "<key>/3"
    std::size_t longest = 0;  // bytes of one rank's text
    /// Called with each text in rank order. An error of it ends the gather.
    std::function<Status(Rank, const std::string&)> take;
    /// Returns the ranks to check while others are awaited.
    std::function<std::span<const Endpoint>()> present = [] { return std::span<const Endpoint>(); };
};

/// The contribution of this rank.
struct Contribution {
    Rank self = 0;
    std::string text;
};

[[nodiscard]] Rank gatherer_of(Rank rank, int size);

/// Gathers the texts. All ranks must call it, each with its contribution. A gatherer takes and
/// forwards those of its subgroup, rank 0 takes all, and the others take none. Returns kPeerLost
/// for a rank that is gone or whose entry is malformed, kTimeout (silent_in() returns the late
/// ranks), and errors of `take`.
[[nodiscard]] Status gather(Store& store, const TreeGather& what, const Contribution& own,
                            const RendezvousContext& rendezvous);

/// Returns the first ranks that have not published under `key`, as many as an error lists.
[[nodiscard]] std::vector<Rank> silent_in(Store& store, const std::string& key, int size);
/// Returns the first gatherer that has not forwarded its subgroup's texts; rank 0 if all others
/// have.
[[nodiscard]] Rank idle_gatherer_in(Store& store, const std::string& key, int size);

/// Removes the entries of `self` under `key`. Call it once no rank needs them.
void remove_contribution(Store& store, const std::string& key, Rank self, int size);

/// Returns kPeerLost: the entry of `rank` is malformed, with the reason `why`.
[[nodiscard]] Status unreadable(Rank rank, const Status& why);

}  // namespace pccl::bootstrap
