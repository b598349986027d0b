// SPDX-License-Identifier: Apache-2.0

// Incarnations of a group: groups of one name meet repeatedly at one store, which may contain
// complete or partial remains of earlier ones, and entries of strangers.
//
//   rank 0:  opens an incarnation with an id of 128 random bits, under a key that it overwrites
//   others:  read that key, and answer under a key that contains the id (exchange_roster())
//   rank 0:  collects all answers to this id, and publishes the roster, also under the id
//   others:  find their own nonce in the roster, and so have joined this group
//
// No rank ends up in a group without the others, whatever the store contained before:
//
//  - Rank 0 reads answers to its own id only. No answer can be older than the id, so each one
//    comes from a process that joins at the same time.
//  - Another rank accepts only a roster with the nonce that it made for this call. Rank 0 made
//    that roster from its answer, and has accepted it for this call.
//  - An incarnation may be over, or its rank 0 may have ended; the store does not show it. A rank
//    that waits for a roster therefore checks periodically for a newer incarnation, and answers
//    that one, too. Before that it checks for the roster once more: rank 0 publishes the roster
//    before it can open another incarnation. A slow rank thus still joins the first one, even if
//    rank 0 has left it already and joins the next.
//  - An incarnation that has a roster when a rank first finds it was made without that rank's
//    answer, and is skipped.
//
// There is no common generation counter, because ranks that were killed, restarted or started late
// would count differently.
//
// The remains of ended incarnations are removed once all ranks have answered a later one, because
// no rank needs them then.
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
    /// Entries that an ended incarnation has left in the store.
    struct Remains {
        transport::GroupId group{};
        int size = 1;

        bool operator==(const Remains&) const = default;
    };

    GroupIdentity identity;
    int size = 1;
    Announcement root;  // of rank 0, which has opened it
    std::vector<Remains> remains{};

    [[nodiscard]] std::string serialise() const;
    /// Parses untrusted bytes. Returns kInvalidArgument with the place.
    static Result<Incarnation> deserialise(std::string_view bytes);
};

/// Incarnations of a group, for one of its ranks. Calls of open() and next() must not overlap.
class PCCL_API Incarnations final : public CurrentIncarnation {
   public:
    /// `rendezvous` must outlive it, and have a pre-join store.
    Incarnations(const Announcement& own, const RendezvousContext& rendezvous)
        : own_(own), rendezvous_(rendezvous) {}

    /// Opens an incarnation, on rank 0.
    [[nodiscard]] Result<GroupIdentity> open();
    /// Waits, on other ranks, for an incarnation that the last call has not returned. Returns
    /// kTimeout when rank 0 has not come, kPeerLost when it is gone, kMismatch when it makes a
    /// group of another size.
    [[nodiscard]] Result<GroupIdentity> next();

    /// Returns the part of the store that belongs to the current incarnation alone.
    [[nodiscard]] std::shared_ptr<Store> store() const;
    [[nodiscard]] Status check_current() override;
    [[nodiscard]] bool counts() const override;
    /// Returns whether there is an incarnation that this rank has skipped, or that does not count.
    [[nodiscard]] bool is_of_another_time() const { return current_ && !counts(); }
    /// Returns the announcement of the process that has opened the current incarnation.
    [[nodiscard]] const Announcement& root() const { return current_->root; }
    /// Returns the error for a wait for rank 0 that ended with `late` (kTimeout). It contains a
    /// group of another attempt that is in the store, if any.
    [[nodiscard]] Status timeout_cause(const Status& late) const;
    /// Removes this rank's remains of earlier incarnations. Call it once all ranks have joined the
    /// current one. Ignores failures to remove an entry.
    void remove_remains() const;

   private:
    [[nodiscard]] Result<std::optional<Incarnation>> read();
    /// Returns nullopt for an unusable entry of another attempt, otherwise its error.
    [[nodiscard]] Result<std::optional<Incarnation>> judged(const Status& unusable) const;
    [[nodiscard]] Result<std::optional<GroupIdentity>> take(Incarnation found);
    [[nodiscard]] Status wait_for_change();
    [[nodiscard]] std::vector<Incarnation::Remains> remains_of(const Incarnation& before);

    const Announcement own_;
    const RendezvousContext& rendezvous_;
    std::optional<Incarnation> current_;
    bool has_looked_ = false;
    bool is_there_ = false;        // an entry exists, usable or not
    bool is_passed_over_ = false;  // the current incarnation
    Duration pause_{};
    TimePoint looked_around_ = system_clock().now();
};

}  // namespace pccl::bootstrap
