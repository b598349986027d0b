// What every rank says, brought to rank 0 through the store by way of some of the others: ranks are
// in groups of about the square root of all, and the first of a group, its gatherer, publishes in
// one text what its group said. So no rank awaits more than some 2 sqrt(n) entries.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "csrc/bootstrap/rendezvous_context.h"

namespace pccl::bootstrap {

struct TreeGather {
    std::string key;          // rank 3 speaks under "<key>/3"
    std::size_t longest = 0;  // bytes of what one rank says
    /// Called in order of ranks with what each says; an error of it ends the gather.
    std::function<Status(Rank, const std::string&)> take;
    /// The ranks to look at while others are awaited.
    std::function<std::span<const Endpoint>()> present = [] { return std::span<const Endpoint>(); };
};

/// What this rank says itself.
struct Contribution {
    Rank self = 0;
    std::string text;
};

[[nodiscard]] Rank gatherer_of(Rank rank, int size);

/// To be called by all ranks, each with its contribution: a gatherer takes those of its group and
/// passes them on, rank 0 takes all; the others take none. Errors: kPeerLost a rank that is gone,
/// or whose entry cannot be read; kTimeout (see silent_in() for whom); what `take` returns.
[[nodiscard]] Status gather(Store& store, const TreeGather& what, const Contribution& own,
                            const RendezvousContext& rendezvous);

/// The first ranks that have not spoken under `key`, of those worth naming.
[[nodiscard]] std::vector<Rank> silent_in(Store& store, const std::string& key, int size);
/// The first gatherer that has not passed on what its group said: rank 0, if all others have.
[[nodiscard]] Rank idle_gatherer_in(Store& store, const std::string& key, int size);

/// What `self` said under `key`, and passed on, once nobody needs it any more.
void remove_contribution(Store& store, const std::string& key, Rank self, int size);

/// kPeerLost: `rank` is to blame for an entry that `why` tells of.
[[nodiscard]] Status unreadable(Rank rank, const Status& why);

}  // namespace pccl::bootstrap
