// A rank on its way into a group: it meets the others at a store, and learns what all must know
// alike.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "csrc/base/interruptible.h"
#include "csrc/bootstrap/incarnation.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/rendezvous_context.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/capsule/capsule.h"
#include "csrc/comm/group.h"
#include "csrc/comm/join_notice.h"
#include "csrc/comm/options.h"
#include "csrc/comm/selection/selector.h"

namespace pccl::comm {

class Rendezvous {
   public:
    /// `cancellation` outlives it.
    Rendezvous(CommunicatorOptions options, const Cancellation& cancellation);
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;
    /// Leaves the group again, unless join() has given it away.
    ~Rendezvous();

    /// Waits for all ranks, to be called once. Communicator::create() says with what it ends.
    Result<std::shared_ptr<Group>> join();
    /// With the runtime, the place and the store that the group has.
    [[nodiscard]] const CommunicatorOptions& options() const { return options_; }

   private:
    /// What this rank finds out by itself, before it meets anybody.
    Status make_ready();
    Status meet_and_connect();
    Status given_up(const Status& met);
    /// superseded() where the ranks meet in another incarnation of the group than the one in which
    /// this rank `met` with an error, else that.
    [[nodiscard]] Status looked_for_another(const Status& met);
    /// Whether another process has announced itself as `rank` than the one that has answered.
    [[nodiscard]] bool has_come_anew(Rank rank) const;
    /// All that must be known before links are made.
    Status meet();
    /// Meets the others in one incarnation of the group after the other, until one comes about.
    Status meet_others();
    Status meet_in_next();
    Status meet_in(const bootstrap::GroupIdentity& identity);
    /// Also begins to look for incarnations.
    [[nodiscard]] Status announce();
    [[nodiscard]] bool may_store_come_again(const Status& met) const;
    Status reopen_store(const Status& why);
    /// The group can be reached from here on.
    void register_rank(const bootstrap::GroupIdentity& identity);
    void leave_group();
    Status exchange_roster();
    /// What rank 0 has for all.
    [[nodiscard]] Status offer_as_first();
    Status choose_alike();

    /// Ranks on several hosts check that they lay schedules out alike; those of one host have it
    /// from one roster.
    Status agree_on_layout();
    /// Of the first rank of a host: the way to rank 0's (bootstrap::OwnHost::time_way).
    [[nodiscard]] std::optional<topo::HostWay> way_to_first(const bootstrap::Roster& met) const;

    /// Whether a rank of the job is known to be lost, as a rendezvous asks now and then.
    [[nodiscard]] Status look_for_lost(std::span<const bootstrap::Endpoint> present, Rank awaited);
    /// Whether the ranks of this incarnation are of this rank's time.
    [[nodiscard]] bool is_among_contemporaries();
    /// Who is interrupted looks as if the time had passed.
    [[nodiscard]] Status cause_of(const Status& met) const;
    /// `met` as this rank's user hears it, once all others can.
    [[nodiscard]] Status failed(const Status& met) const;
    [[nodiscard]] Status agreed(const Status& why) const;
    /// Whom this rank has no way to may be there all the same: then it has lost its network.
    [[nodiscard]] Status with_own_part(const Status& why) const;

    CommunicatorOptions options_;
    const Cancellation& cancellation_;
    bootstrap::RendezvousContext rendezvous_;
    JoinNotice notice_;
    bootstrap::Announcement own_;
    std::optional<bootstrap::Incarnations> incarnations_;  // of several ranks, from announce() on
    std::vector<capsule::Capsule> given_;                  // by the environment
    bootstrap::Roster roster_;
    std::vector<bootstrap::Endpoint> answered_;  // in this incarnation, as far as it is known
    std::shared_ptr<Group> group_;               // from register_rank() on
    Preferences preferences_;
    std::shared_ptr<const bootstrap::Layout> layout_;
};

}  // namespace pccl::comm
