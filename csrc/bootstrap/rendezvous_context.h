// SPDX-License-Identifier: Apache-2.0

// Waits of ranks for each other at a store, and the exchange of texts that exceed its values.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include <pccl/store.h>
#include "csrc/bootstrap/announcement.h"
#include "csrc/bootstrap/endpoint.h"

namespace pccl::bootstrap {

struct Roster;

/// The incarnation of a group that a rank waits for, and which may never be completed.
class CurrentIncarnation {
   public:
    virtual ~CurrentIncarnation() = default;
    /// Returns superseded() once another incarnation is open; on rank 0, kMismatch with the process
    /// that opened it.
    [[nodiscard]] virtual Status check_current() = 0;
    /// Returns whether ended processes and failures in it concern this rank. They do not if the
    /// rank has skipped it, or an earlier attempt has left it.
    [[nodiscard]] virtual bool counts() const = 0;
};

struct RendezvousContext {
    int size = 1;
    Deadline deadline;
    /// Store in which ranks announce themselves before they join; null: the store at which they
    /// wait.
    std::shared_ptr<Store> pre_join{};
    /// Decides which ended processes count; null: all do.
    std::shared_ptr<Contemporaries> contemporaries{};
    /// Set until the incarnation is certain to be completed; null: it is.
    CurrentIncarnation* incarnation = nullptr;
    /// Endpoint of rank 0, which waiting ranks check; null: no check.
    const Endpoint* root = nullptr;
    /// Called periodically with the ranks that are known and the one that is awaited. Returns
    /// kPeerLost when one of the group is gone.
    std::function<Status(std::span<const Endpoint>, Rank)> lost{};
    /// Returns kPeerLost when a rank that has announced itself is gone.
    std::function<Status(const Endpoint&)> probe{};
    // Rank 0's values for all: Roster::tuning and costs, and Roster::job where that depends on rank
    // 0 alone.
    std::string tuning{};
    std::string costs{};
    std::function<Result<std::string>(const Roster&)> describe{};
};

/// Location of a text, and the ranks that must set it.
struct Awaiting {
    std::string key;
    Rank from = 0;
    std::span<const Endpoint> present{};
    Rank until = from + 1;  // end of the ranks that are awaited, which begin at `from`
};

/// Returns the longest wait at a store before the checks for lost ranks. It grows with the number
/// of ranks, which make at most about 1,300 checks per second together.
[[nodiscard]] Duration store_slice(int size);

/// Returns the error of waits after another incarnation of the group has been opened.
[[nodiscard]] Status superseded();
[[nodiscard]] bool is_superseded(const Status& status);

/// Waits for a key in slices, and checks between them for lost ranks and for a newer incarnation.
[[nodiscard]] Result<std::string> await(Store& store, const Awaiting& what,
                                        const RendezvousContext& rendezvous);

/// Checks the awaited ranks that have announced themselves. Returns kPeerLost where one has ended,
/// and the error of one that cannot join.
[[nodiscard]] Status look_for_lost(Store& pre_join, const Awaiting& what,
                                   const RendezvousContext& rendezvous);

/// Publishes a text. Values of a store are bounded, so a long text takes several, under keys that
/// begin with `key`.
[[nodiscard]] Status publish_text(Store& store, const std::string& key, const std::string& text);
/// Returns kInvalidArgument for a text of more than `most` bytes.
[[nodiscard]] Result<std::string> await_text(Store& store, const Awaiting& what, std::size_t most,
                                             const RendezvousContext& rendezvous);
/// Returns whether the text is published; does not wait. An entry that cannot be proven is none.
/// Returns the error of a store that does not answer.
[[nodiscard]] Result<bool> has_text(Store& store, const std::string& key);
/// Removes a text that no rank awaits any more. Ignores failures to remove an entry.
void remove_text(Store& store, const std::string& key);

/// Returns the error of a rank that could not join; ok while there is none.
[[nodiscard]] Status failure_in(Store& store);
/// Removes that error. Call it when no rank needs it any more.
void remove_failure(Store& store);
/// Converts an error for the other ranks. If it is caused by the resources of `self`
/// (kResourceExhausted, kUnavailable), or by an interrupt (kAborted), the others report `self` as
/// lost.
[[nodiscard]] Status as_reported(const Status& why, Rank self);
/// Publishes the error of a rank that could not join, and returns the first such error, so that all
/// ranks report the same. An error that only others see as a loss remains this rank's own.
[[nodiscard]] Status agree_on_failure(Store& store, const Status& why, Rank self);

}  // namespace pccl::bootstrap
