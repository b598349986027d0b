// SPDX-License-Identifier: Apache-2.0

// Announcements that ranks leave in the store before they have joined their group: the location of
// the process, or the reason why it cannot join. This file also decides which ended processes
// matter, because stores outlive processes.
//
// A process that has announced itself and ended is a lost peer to a rank that joins at the same
// time, but irrelevant to a later attempt at the job, which finds the same entry. The store does
// not distinguish these cases; `Contemporaries` does. An end counts if the process was alive while
// this rank joined (it was seen alive, or its entry appeared after the first look), or if its entry
// is younger than this process. The last rule holds wherever all processes of one attempt end
// before those of the next start. Between machines it requires clocks that differ by less than a
// second. An end that does not count only costs time: the rank is then awaited until the deadline.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <pccl/store.h>
#include "csrc/bootstrap/endpoint.h"

namespace pccl::bootstrap {

struct PCCL_API Announcement {
    Endpoint endpoint;       // its nonce distinguishes announcements of one rank
    std::int64_t at_ms = 0;  // by the wall clock of its host
    Status failure{};        // why the rank cannot join; ok while it is joining

    [[nodiscard]] std::string serialise() const;
    /// Parses untrusted bytes. Returns kInvalidArgument with the place.
    static Result<Announcement> deserialise(std::string_view bytes);
};

/// Returns an announcement with the current time and a fresh nonce.
[[nodiscard]] Result<Announcement> announcement_of(Endpoint endpoint, Status failure = {});

/// Stores the announcement for announced(), and replaces that of an earlier process of the rank.
[[nodiscard]] Status announce(Store& pre_join, const Announcement& own);
/// Returns the last announcement of `rank`; kTimeout where there is none, kInvalidArgument where it
/// is malformed.
[[nodiscard]] Result<Announcement> announced(Store& pre_join, Rank rank);
/// Returns the last announcement of `rank` without checking that it proves the job's secret.
[[nodiscard]] Result<Announcement> unproven_announcement(Store& pre_join, Rank rank);
/// Removes the announcement of a rank that has joined.
[[nodiscard]] Status withdraw(Store& pre_join, Rank rank);

/// Begins a new attempt of this process: the current contents of stores no longer count as part of
/// it.
PCCL_API void begin_attempt();

class PCCL_API Contemporaries {
   public:
    /// `machine` is that of a rank that reads announcements from now on. Its attempt began with its
    /// process, or at the last begin_attempt().
    explicit Contemporaries(std::string machine);
    Contemporaries(std::string machine, std::int64_t since_ms)
        : machine_(std::move(machine)), since_ms_(since_ms) {}

    /// Records the nonce in the store's entry of `rank`; 0: none.
    void note(Rank rank, std::uint64_t nonce);
    void saw_alive(const Announcement& other);
    [[nodiscard]] bool counts(const Announcement& other) const;

   private:
    struct Seen {
        std::uint64_t first = 0;
        std::uint64_t alive = 0;
    };

    const std::string machine_;
    const std::int64_t since_ms_;
    std::map<Rank, Seen> seen_;
};

}  // namespace pccl::bootstrap
