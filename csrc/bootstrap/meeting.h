// How ranks wait for each other at a store, and pass on texts that are longer than its values.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "csrc/bootstrap/endpoint.h"
#include "csrc/bootstrap/rendezvous/store.h"

namespace pccl::bootstrap {

struct Roster;

struct Meeting {
    int size = 1;
    Deadline deadline;
    /// Where ranks say that they are on their way, or cannot join; null: in the store they wait at.
    std::shared_ptr<Store> lobby{};
    /// Called now and then with the ranks known to be there and the one that is waited for:
    /// kPeerLost when one of the group is gone.
    std::function<Status(std::span<const Endpoint>, Rank)> lost{};
    /// Whether a rank that has announced itself is still there: kPeerLost when not.
    std::function<Status(const Endpoint&)> probe{};
    // Rank 0's, for all: Roster::tuning and costs, and Roster::job where that needs no other rank's
    // word.
    std::string tuning{};
    std::string costs{};
    std::function<Result<std::string>(const Roster&)> describe{};
};

/// Where a text is, and who is to put it there.
struct Awaiting {
    std::string key;
    Rank from = 0;
    std::span<const Endpoint> present{};
    Rank until = from + 1;  // ranks behind `from` that are awaited, too
};

/// Before anything else: says that this rank is on its way, and where it can be found, so that it
/// counts as lost rather than as missing if its process ends now.
[[nodiscard]] Status announce(Store& store, const Endpoint& mine);

/// Where `rank` can be found, as far as it has announced itself.
[[nodiscard]] Result<Endpoint> announced(Store& store, Rank rank);

/// How long a store is waited for before looking whether all is lost.
inline constexpr Duration kStoreSlice = std::chrono::milliseconds(200);

/// Waits for a key in slices, and looks between them whether all is lost.
[[nodiscard]] Result<std::string> await(Store& store, const Awaiting& what, const Meeting& meeting);

/// A store's values are bounded: a long text takes several, with keys that begin with `key`.
[[nodiscard]] Status publish_text(Store& store, const std::string& key, const std::string& text);
/// kInvalidArgument for a text of more than `most` bytes.
[[nodiscard]] Result<std::string> await_text(Store& store, const Awaiting& what, std::size_t most,
                                             const Meeting& meeting);
/// Whether it has been published; does not wait.
[[nodiscard]] bool has_text(Store& store, const std::string& key);

/// What a rank that could not join has left in the store; ok while none has.
[[nodiscard]] Status failure_in(Store& store);
/// To be called by a rank that could not join: what the first of them says, so that all blame the
/// same. What `self` lacks itself (kResourceExhausted, kUnavailable), or that it was interrupted
/// (kAborted), stays its own error, and makes it the lost one to the others.
[[nodiscard]] Status agree_on_failure(Store& store, const Status& why, Rank self);

}  // namespace pccl::bootstrap
