// Who is to blame when an operation does not end: found by asking the ranks that it waits for, then
// those that these wait for, until one does not answer, has left, or has not come.
#pragma once

#include <functional>

#include "csrc/base/clock.h"
#include "csrc/collective/awaited.h"
#include "csrc/comm/diagnosis/rank_status.h"

namespace pccl::comm {

/// Of an operation of this rank.
struct Stall {
    Rank self = 0;
    int ranks = 1;
    std::string group{};
    std::uint64_t sequence = 0;      // of the collective
    abi::CollectiveHeader header{};  // of that
    AwaitedRanks awaited{};
    Deadline deadline = Deadline::never();
};

/// Asks a rank directly; kPeerLost where it is gone, kTimeout where it is silent.
using Ask = std::function<Result<RankStatus>(Rank)>;

/// Why `rank` can no longer take part, by what it answers: its own reason, as it is seen from here,
/// or that it is gone. ok while it can, and where it is silent.
[[nodiscard]] PCCL_API Status why_lost(Rank rank, const Result<RankStatus>& answer, Rank self,
                                       int ranks);

/// kMismatch where `rank` has called another collective under the number of ours: both may wait,
/// for ever, for what neither sends.
[[nodiscard]] PCCL_API Status why_different(const Stall& stall, Rank rank,
                                            const RankStatus& answer);

/// Whether a rank has not called our collective, and waits in one of another group that we have not
/// called.
[[nodiscard]] PCCL_API bool is_out_of_order(const Stall& stall, const RankStatus& answer);
/// The same, and it waits for us there: neither goes on by itself.
[[nodiscard]] PCCL_API bool is_crossed(const Stall& stall, const RankStatus& answer);
/// What that is then: kMismatch about `rank`.
[[nodiscard]] PCCL_API Status crossed(const Stall& stall, Rank rank,
                                      const OtherGroupWait& other_group_wait);

/// The finding about an operation whose time is over: kTimeout that names the rank at the bottom of
/// it, or what made another rank leave. Asks each rank at most once, and at most 16.
[[nodiscard]] PCCL_API Status find_culprit(const Stall& stall, const Ask& ask);

}  // namespace pccl::comm
