// How ranks wait for each other at a store, and pass on texts that are longer than its values.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "csrc/bootstrap/announcement.h"
#include "csrc/bootstrap/endpoint.h"
#include "csrc/bootstrap/rendezvous/store.h"

namespace pccl::bootstrap {

struct Roster;

/// The incarnation of a group in which a rank waits, and which may not come about.
class CurrentIncarnation {
   public:
    virtual ~CurrentIncarnation() = default;
    /// superseded() once another one is open; on rank 0 kMismatch, which names the process that
    /// opened it.
    [[nodiscard]] virtual Status check_current() = 0;
    /// Whether the ends of processes in it, and what they failed of, concern this rank: not where
    /// it has passed it over, or an earlier attempt has left it.
    [[nodiscard]] virtual bool counts() const = 0;
};

struct RendezvousContext {
    int size = 1;
    Deadline deadline;
    /// Where ranks announce themselves before they know their group; null: in the store they wait
    /// at.
    std::shared_ptr<Store> pre_join{};
    /// Whose end counts; null: everybody's.
    std::shared_ptr<Contemporaries> contemporaries{};
    /// While it is not known whether it will come about; null: it will.
    CurrentIncarnation* incarnation = nullptr;
    /// Rank 0, for those who look at it; null: nobody does.
    const Endpoint* root = nullptr;
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

/// How long a store is waited for before looking whether all is lost.
inline constexpr Duration kStoreSlice = std::chrono::milliseconds(200);

/// What waits end with where another incarnation of the group has been opened meanwhile.
[[nodiscard]] Status superseded();
[[nodiscard]] bool is_superseded(const Status& status);

/// Waits for a key in slices, and looks between them whether all is lost, or superseded.
[[nodiscard]] Result<std::string> await(Store& store, const Awaiting& what,
                                        const RendezvousContext& rendezvous);

/// Looks at those who are awaited and have announced themselves: kPeerLost where one has ended, and
/// what one says that cannot join.
[[nodiscard]] Status look_for_lost(Store& pre_join, const Awaiting& what,
                                   const RendezvousContext& rendezvous);

/// A store's values are bounded: a long text takes several, with keys that begin with `key`.
[[nodiscard]] Status publish_text(Store& store, const std::string& key, const std::string& text);
/// kInvalidArgument for a text of more than `most` bytes.
[[nodiscard]] Result<std::string> await_text(Store& store, const Awaiting& what, std::size_t most,
                                             const RendezvousContext& rendezvous);
/// Whether it has been published; does not wait.
[[nodiscard]] bool has_text(Store& store, const std::string& key);
/// Of one that nobody awaits any more. What cannot be removed stays.
void remove_text(Store& store, const std::string& key);

/// What a rank that could not join has left in the store; ok while none has.
[[nodiscard]] Status failure_in(Store& store);
/// To be called when nobody needs it any more.
void remove_failure(Store& store);
/// How the others are told of that: what `self` lacks itself (kResourceExhausted, kUnavailable), or
/// that it was interrupted (kAborted), makes it the lost one to them.
[[nodiscard]] Status as_told(const Status& why, Rank self);
/// To be called by a rank that could not join: what the first of them says, so that all blame the
/// same. What only others are told as a loss stays this rank's own error.
[[nodiscard]] Status agree_on_failure(Store& store, const Status& why, Rank self);

}  // namespace pccl::bootstrap
