// SPDX-License-Identifier: Apache-2.0

// Exchange of status between ranks during a phase switch: each rank publishes its progress, and
// sends requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/comm/phase/phased_group.h"

namespace pccl::comm {

/// Pause between two requests to the same ranks. It grows each time, but ends early when a rank
/// sends a request to this process, which indicates news. Create it before the first request.
class QueryPause {
   public:
    QueryPause();
    /// Returns a pause with the maximum duration from the start, for ranks that send a request here
    /// for certain when they have news.
    static QueryPause until_rung();
    void rest();

   private:
    explicit QueryPause(Duration first);

    std::uint64_t rings_;  // ring count before the last request
    Duration next_;
};

class PhaseTalk {
   public:
    using Stage = Switching::Stage;

    /// Starts the exchange. `answer_timeout` is for a rank that does not answer.
    PhaseTalk(PhasedGroup& group, Duration answer_timeout);

    [[nodiscard]] PhasedGroup& group() const { return group_; }
    /// Returns the state that publish_stage() publishes.
    [[nodiscard]] Switching& own() { return own_; }
    [[nodiscard]] const Switching& own() const { return own_; }
    void publish_stage(Stage stage);

    /// Requests the status of a rank, and stores the answer. Returns ok also if the rank is
    /// temporarily silent; kPeerLost if it is gone, kTimeout if it has been silent for too long.
    [[nodiscard]] Status query(Rank rank);
    /// Requests the status of several ranks, some of them concurrently. Returns one result each.
    [[nodiscard]] std::vector<Status> query_all(const std::vector<Rank>& ranks);
    /// Returns the ranks that have sent a request here since the last request to them, which
    /// indicates news.
    [[nodiscard]] std::vector<Rank> with_news(const std::vector<Rank>& ranks) const;
    /// Returns the last answer of a rank.
    [[nodiscard]] const RankStatus& status_of(Rank rank) const {
        return statuses_[static_cast<std::size_t>(rank)];
    }
    /// Returns whether it has reported the result of this switch.
    [[nodiscard]] bool has_result(Rank rank) const;
    /// Returns all ranks but rank 0 and this one.
    [[nodiscard]] std::vector<Rank> others() const;

    /// Publishes the result, and waits until all others that have called have it, or are gone.
    void publish_result(Switching::SwitchResult switch_result);

   private:
    [[nodiscard]] bool has_received_result(Rank rank) const;
    /// Removes the ranks that have the result from `unnotified`; waits for the others until
    /// `until`.
    void await_receipt(std::vector<Rank>& unnotified, Deadline until) const;

    PhasedGroup& group_;
    const Duration answer_timeout_;
    Switching own_;
    std::vector<RankStatus> statuses_;  // indexed by rank
    std::vector<TimePoint> answered_;
    /// For each rank: the number of its requests before the last request to it.
    std::vector<std::uint64_t> received_questions_;
};

}  // namespace pccl::comm
