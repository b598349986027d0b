// Which incarnation of a group meets now: groups of one name come about again and again at one
// store, which may hold what earlier ones left, whole or in part, and what strangers put there.
//
//     rank 0:   opens an incarnation with an id of 128 random bits, under one key that it
//     overwrites others:   read that key, and answer under a key that the id is part of
//     (exchange_roster()) rank 0:   has all answers to this id, and publishes the roster, under the
//     id, too others:   find their own nonce in the roster: this group is theirs
//
// Why no rank ends up in a group that others are not in, whatever the store held before:
//  - Rank 0 reads answers to its own id alone. Nobody can have given one before it was made up, so
//    each comes from a process that joins at the same time.
//  - Another rank goes on only with a roster that holds the nonce which it made up for this call,
//  so
//    that roster was made of its answer, by a rank 0 that took it for this call.
//  - An incarnation may be over, or its rank 0 may have ended: the store does not tell. A rank
//    that waits for a roster therefore looks now and then whether another incarnation has been
//    opened, and answers that one, too. It looks for the roster once more first: rank 0 publishes
//    that before it can open another, so a rank that is slow to read its roster, while rank 0 has
//    left the group and joins the next, still joins the first.
//  - One that has a roster already when a rank first meets it was made without that rank's answer,
//    and is passed over.
// So a generation counted up by all is not needed: ranks need not agree on a number that some of
// them (killed, restarted, or started late) have counted differently.
//
// What ended incarnations have left is removed once all ranks have answered a later one; they have
// no more use for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/bootstrap/announcement.h"
#include "csrc/bootstrap/rendezvous_context.h"
#include "csrc/bootstrap/roster.h"

namespace pccl::bootstrap {

struct PCCL_API Incarnation {
    /// What an ended one has left in the store.
    struct Remains {
        transport::GroupId group{};
        int size = 1;

        bool operator==(const Remains&) const = default;
    };

    GroupIdentity identity;
    int size = 1;
    Announcement root;  // rank 0's, which has opened it
    std::vector<Remains> remains{};

    [[nodiscard]] std::string serialise() const;
    /// From bytes of any origin: kInvalidArgument names the place.
    static Result<Incarnation> deserialise(std::string_view bytes);
};

/// A rank among the incarnations of its group. One call of open() or next() after the other.
class PCCL_API Incarnations final : public CurrentIncarnation {
   public:
    /// `rendezvous` outlives it, and has a pre-join store.
    Incarnations(const Announcement& own, const RendezvousContext& rendezvous)
        : own_(own), rendezvous_(rendezvous) {}

    /// Rank 0 opens one.
    [[nodiscard]] Result<GroupIdentity> open();
    /// Other ranks wait for one that the last call has not returned. Errors: kTimeout when rank 0
    /// has not come, kPeerLost when it is gone, kMismatch when it makes a group of another size.
    [[nodiscard]] Result<GroupIdentity> next();

    /// The part of the store that belongs to the current one alone.
    [[nodiscard]] std::shared_ptr<Store> store() const;
    [[nodiscard]] Status check_current() override;
    [[nodiscard]] bool counts() const override;
    /// Whether there is one that this rank has passed over, or that does not count.
    [[nodiscard]] bool is_of_another_time() const { return current_ && !counts(); }
    /// The process that has opened the current one.
    [[nodiscard]] const Announcement& root() const { return current_->root; }
    /// Names rank 0, which `late` (kTimeout) has waited for, and what was there instead.
    [[nodiscard]] Status timeout_cause(const Status& late) const;
    /// To be called once all have joined the current one: removes what earlier ones left, of which
    /// every rank has its part. What cannot be removed stays.
    void remove_remains() const;

   private:
    [[nodiscard]] Result<std::optional<Incarnation>> read();
    /// nullopt for an entry of another time that cannot be used, else why it cannot be used.
    [[nodiscard]] Result<std::optional<Incarnation>> judged(const Status& unusable) const;
    [[nodiscard]] Result<std::optional<GroupIdentity>> take(Incarnation found);
    [[nodiscard]] Status wait_for_change();
    [[nodiscard]] std::vector<Incarnation::Remains> remains_of(const Incarnation& before);

    const Announcement own_;
    const RendezvousContext& rendezvous_;
    std::optional<Incarnation> current_;
    bool has_looked_ = false;
    bool is_there_ = false;        // an entry, of whatever use
    bool is_passed_over_ = false;  // the current one
    Duration pause_{};
    TimePoint looked_around_ = system_clock().now();
};

}  // namespace pccl::bootstrap
