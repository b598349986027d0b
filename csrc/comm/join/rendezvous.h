// SPDX-License-Identifier: Apache-2.0

// Rendezvous of a rank with its group: it meets the others at a store and exchanges the settings
// that all ranks must share.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/store.h>
#include "csrc/base/ids.h"
#include "csrc/base/log/wait_notice.h"
#include "csrc/base/threads/interruptible.h"
#include "csrc/bootstrap/incarnation.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/rendezvous/bounded_store.h"
#include "csrc/bootstrap/rendezvous_context.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/capsule/capsule.h"
#include "csrc/comm/group/group.h"
#include "csrc/comm/group/options.h"
#include "csrc/comm/selection/selector.h"

namespace pccl::comm {

/// Notice on stderr that names the rank that this rank waits for. In a large job only some ranks,
/// spread over the job, print it.
class JoinNotice {
   public:
    /// Keeps a reference to `options`, which must outlive it.
    explicit JoinNotice(const CommunicatorImplOptions& options) : options_(options) {}

    /// Sets the store in which this rank has published its own entry; null: none yet.
    void look_in(std::shared_ptr<Store> store) { store_ = std::move(store); }
    void look(Rank awaited);

   private:
    static constexpr int kMostReporters = 16;

    const CommunicatorImplOptions& options_;
    const TimePoint begun_ = system_clock().now();
    std::shared_ptr<Store> store_;
    WaitNotice notice_;
};

class Rendezvous {
   public:
    /// Keeps a reference to `cancellation`, which must outlive it.
    Rendezvous(CommunicatorImplOptions options, const Cancellation& cancellation);
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;
    /// Leaves the group again, unless join() has returned it.
    ~Rendezvous();

    /// Waits for all ranks; call it once. Errors are those of Communicator::create().
    Result<std::shared_ptr<Group>> join();
    /// Returns the options with the runtime, the placement and the store of the group.
    [[nodiscard]] const CommunicatorImplOptions& options() const { return options_; }

   private:
    /// Prepares this rank's own information, before it contacts peers.
    Status make_ready();
    Status meet_and_connect();
    Status given_up(const Status& met);
    /// Returns superseded() if the ranks meet in another incarnation of the group than the one in
    /// which this rank failed with `met`; otherwise `met`.
    [[nodiscard]] Status looked_for_another(const Status& met);
    /// Returns whether another process has announced itself as `rank` after the one that answered.
    [[nodiscard]] bool has_come_anew(Rank rank) const;
    /// Exchanges everything that is required before links are created.
    Status meet();
    /// Meets the others in successive incarnations of the group, until one is complete.
    Status meet_others();
    Status meet_in_next();
    Status meet_in(const bootstrap::GroupIdentity& identity);
    /// Publishes this rank and starts to watch for incarnations.
    [[nodiscard]] Status announce();
    [[nodiscard]] bool may_store_come_again(const Status& met) const;
    Status reopen_store(const Status& why);
    /// Registers the rank with the runtime: peers can reach the group from here on.
    void register_rank(const bootstrap::GroupIdentity& identity);
    void leave_group();
    Status exchange_roster();
    /// Publishes the data of rank 0 for all ranks.
    [[nodiscard]] Status offer_as_first();
    Status choose_alike();

    /// Checks that ranks on several hosts compute the same layout; ranks of one host have it from
    /// one roster.
    Status agree_on_layout();
    /// Measures the path from the first rank of this host to the host of rank 0
    /// (bootstrap::OwnHost::time_way). Empty on other ranks.
    [[nodiscard]] std::optional<topo::HostWay> way_to_first(const bootstrap::Roster& met) const;

    /// Returns an error if a rank of the job is lost. The rendezvous calls it from time to time.
    [[nodiscard]] Status look_for_lost(std::span<const bootstrap::Endpoint> present, Rank awaited);
    /// Returns whether the processes of this incarnation were alive during this rank's attempt.
    [[nodiscard]] bool is_among_contemporaries();
    /// Returns the interrupt's error if this rank was interrupted, which looks like a timeout;
    /// otherwise `met`.
    [[nodiscard]] Status cause_of(const Status& met) const;
    /// Returns the error for this rank's user, after all others can obtain it.
    [[nodiscard]] Status final_error(const Status& met) const;
    [[nodiscard]] Status agreed(const Status& why) const;
    /// Adds this rank's own network failure: a peer that this rank cannot reach may still be
    /// running.
    [[nodiscard]] Status with_own_part(const Status& why) const;

    CommunicatorImplOptions options_;
    const Cancellation& cancellation_;
    bootstrap::RendezvousContext rendezvous_;
    /// Ends its calls at the deadline of the rendezvous while that lasts; null: one rank
    /// without a store.
    std::shared_ptr<bootstrap::BoundedStore> bounded_store_;
    JoinNotice notice_;
    bootstrap::Announcement own_;
    /// Set by announce() when there are several ranks.
    std::optional<bootstrap::Incarnations> incarnations_;
    std::vector<capsule::VerifiedCapsule> given_;  // from the environment
    bootstrap::Roster roster_;
    std::vector<bootstrap::Endpoint> answered_;  // in this incarnation, before the roster
    std::shared_ptr<Group> group_;               // set by register_rank()
    SelectionPreferences preferences_;
    std::shared_ptr<const bootstrap::Layout> layout_;
};

}  // namespace pccl::comm
