// SPDX-License-Identifier: Apache-2.0

// Wait-for graph of a stalled operation: requests go to the ranks that it waits for, then to the
// ranks that these wait for, until a rank does not answer, has left, or has not called.
#pragma once

#include <functional>

#include <pccl/deadline.h>
#include "csrc/collective/awaited.h"
#include "csrc/comm/diagnosis/rank_status.h"

namespace pccl::comm {

/// A stalled operation of this rank.
struct Stall {
    Rank self = 0;
    int ranks = 1;
    std::string group{};
    std::uint64_t sequence = 0;      // of the collective
    abi::CollectiveHeader header{};  // of the collective
    AwaitedRanks awaited{};
    Deadline deadline = Deadline::never();
};

/// Request of a rank's status; kPeerLost if it is gone, kTimeout if it is silent.
using StatusQuery = std::function<Result<RankStatus>(Rank)>;

/// Returns why `rank` can no longer take part, by its answer: its own reason, converted to the view
/// of `self`, or that it is gone. ok while it can take part, and if it is silent.
[[nodiscard]] PCCL_API Status why_lost(Rank rank, const Result<RankStatus>& answer, Rank self,
                                       int ranks);

/// Returns kMismatch if `rank` has called another collective under our sequence number: both may
/// wait forever for data that neither sends.
[[nodiscard]] PCCL_API Status why_different(const Stall& stall, Rank rank,
                                            const RankStatus& answer);

/// Returns whether a rank has not called our collective, and waits in a collective of another group
/// that we have not called.
[[nodiscard]] PCCL_API bool is_out_of_order(const Stall& stall, const RankStatus& answer);
/// Returns whether, in addition, it waits for us there: neither can continue.
[[nodiscard]] PCCL_API bool is_crossed(const Stall& stall, const RankStatus& answer);
/// Returns the error of that case: kMismatch about `rank`.
[[nodiscard]] PCCL_API Status crossed(const Stall& stall, Rank rank,
                                      const OtherGroupWait& other_group_wait);

/// Returns the cause of an operation that has timed out: kTimeout that names the rank at the end of
/// the chain, or the reason why a rank has left. Sends at most one request to each rank, and at
/// most 16.
[[nodiscard]] PCCL_API Status find_culprit(const Stall& stall, const StatusQuery& query);

}  // namespace pccl::comm
