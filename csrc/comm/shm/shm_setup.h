// How the ranks of one host get a shared-memory segment: rank 0 shares a region of memory, all of
// them open it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "csrc/base/clock.h"
#include "csrc/base/wait_notice.h"
#include "csrc/comm/shm/shm_segment.h"
#include "csrc/runtime/peer_directory.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/region.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::comm {

class ShmSetup {
   public:
    /// Asks rank 0 how it fares; kPeerLost where it is gone.
    using AskFirst = std::function<Status(Deadline)>;

    /// By which the ranks agree, through the store that they met at, that they share no memory
    /// though their addresses let it seem so. Each may be empty: then they do not.
    struct MemoryVote {
        /// Rank 0 tells all others why.
        std::function<Status(const Status& why)> call_off{};
        /// What rank 0 has told; ok while it has not. Does not wait.
        std::function<Status()> called_off{};
        /// Whether a rank answers over the network.
        std::function<bool(Rank, Deadline)> is_there{};
    };

    /// `runtime` and `peers` outlive it.
    ShmSetup(runtime::Runtime& runtime, const runtime::PeerDirectory& peers)
        : runtime_(runtime), peers_(peers) {}

    /// Whether a group of these ranks has a segment.
    [[nodiscard]] static bool has_segment(const bootstrap::Roster& roster);
    /// Returns a segment that all ranks have opened, or null on all of them when rank 0 has called
    /// it off. Rank 0 gives its memory to all; others wait for that, and ask after rank 0
    /// meanwhile. kTimeout and kPeerLost name a rank; a segment that was made stays in `segment`,
    /// good for leave().
    Status make(const AskFirst& ask_first, const MemoryVote& vote, Deadline deadline,
                std::unique_ptr<ShmSegment>& segment);

    // From any thread:

    /// The rank that is waited for, or was in vain; kNoRank: none.
    [[nodiscard]] Rank awaited() const { return awaited_.load(std::memory_order_relaxed); }
    /// The memory of rank 0 has arrived.
    void accepted(const transport::LinkRequest& request, std::unique_ptr<transport::Region> region);
    /// Nothing more will be accepted: ends the wait for rank 0's memory.
    void fall_short(const Status& why) { static_cast<void>(shortage_.set(why)); }

   private:
    Status open(ShmSegment& segment, Deadline deadline);
    Result<std::unique_ptr<transport::Region>> share_region(const MemoryVote& vote,
                                                            Deadline deadline);
    Result<std::unique_ptr<transport::Region>> await_region(const AskFirst& ask_first,
                                                            const MemoryVote& vote,
                                                            Deadline deadline);
    Status make_and_open(const AskFirst& ask_first, const MemoryVote& vote, Deadline deadline,
                         std::unique_ptr<ShmSegment>& segment);
    /// What rank 0 makes of an error: kUnsupported once it has called the segment off.
    Status call_off(const Status& why, const MemoryVote& vote);
    /// How long `rank` is waited for, if it is time to say so.
    void warn_if_slow(TimePoint since, Rank rank, std::string_view act);

    runtime::Runtime& runtime_;
    const runtime::PeerDirectory& peers_;
    std::atomic<Rank> awaited_{kNoRank};
    transport::StickyStatus shortage_;
    std::mutex mutex_;
    std::unique_ptr<transport::Region> region_;  // arrived, not taken yet; guarded by mutex_
    WaitNotice notice_;
};

}  // namespace pccl::comm
