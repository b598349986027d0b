// SPDX-License-Identifier: Apache-2.0

// Setup of the shared-memory segment of one host: rank 0 shares a region of memory, and all ranks
// open it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include <pccl/deadline.h>
#include "csrc/base/log/wait_notice.h"
#include "csrc/comm/shm/shm_segment.h"
#include "csrc/runtime/peer_directory.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/region.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::comm {

class ShmSetup {
   public:
    /// Requests the status of rank 0; kPeerLost if it is gone.
    using QueryFirst = std::function<Status(Deadline)>;

    /// Vote of the ranks, through the store that they met at, that they share no memory although
    /// their addresses suggest it. Each function may be empty: then there is no vote.
    struct MemoryVote {
        /// Publishes the reason from rank 0 to all others.
        std::function<Status(const Status& why)> call_off{};
        /// Returns the reason that rank 0 has published; ok before. Does not wait.
        std::function<Status()> called_off{};
        /// Returns whether a rank answers over the network.
        std::function<bool(Rank, Deadline)> is_there{};
    };

    /// Keeps references to `runtime` and `peers`, which must outlive it.
    ShmSetup(runtime::Runtime& runtime, const runtime::PeerDirectory& peers)
        : runtime_(runtime), peers_(peers) {}

    /// Returns whether a group of these ranks has a segment.
    [[nodiscard]] static bool has_segment(const bootstrap::Roster& roster);
    /// Creates a segment that all ranks have opened, or null on all of them when rank 0 has called
    /// it off. Rank 0 sends its memory to all; others wait for it, and check rank 0 meanwhile.
    /// kTimeout and kPeerLost name a rank; a segment that was created stays in `segment`, for
    /// leave().
    Status make(const QueryFirst& query_first, const MemoryVote& vote, Deadline deadline,
                std::unique_ptr<ShmSegment>& segment);

    // These are thread-safe:

    /// Returns the rank that is waited for, or that a failed wait was for; kNoRank: none.
    [[nodiscard]] Rank awaited() const { return awaited_.load(std::memory_order_relaxed); }
    /// Accepts the memory of rank 0.
    void accepted(const transport::LinkRequest& request, std::unique_ptr<transport::Region> region);
    /// Ends the wait for rank 0's memory, because no region will be accepted.
    void fall_short(const Status& why) { static_cast<void>(shortage_.set(why)); }

   private:
    Status open(ShmSegment& segment, Deadline deadline);
    Result<std::unique_ptr<transport::Region>> share_region(const MemoryVote& vote,
                                                            Deadline deadline);
    Result<std::unique_ptr<transport::Region>> await_region(const QueryFirst& query_first,
                                                            const MemoryVote& vote,
                                                            Deadline deadline);
    Status make_and_open(const QueryFirst& query_first, const MemoryVote& vote, Deadline deadline,
                         std::unique_ptr<ShmSegment>& segment);
    /// Converts an error on rank 0: kUnsupported once it has called the segment off.
    Status call_off(const Status& why, const MemoryVote& vote);
    /// Logs how long `rank` has been waited for, from time to time.
    void warn_if_slow(TimePoint since, Rank rank, std::string_view act);

    runtime::Runtime& runtime_;
    const runtime::PeerDirectory& peers_;
    std::atomic<Rank> awaited_{kNoRank};
    transport::StickyStatus shortage_;
    std::mutex mutex_;
    std::unique_ptr<transport::Region> region_;  // received, not taken yet; guarded by mutex_
    WaitNotice notice_;
};

}  // namespace pccl::comm
