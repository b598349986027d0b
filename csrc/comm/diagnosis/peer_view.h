// SPDX-License-Identifier: Apache-2.0

// Interface to the other ranks of a group for a diagnosis: the state of links and segment, and
// status requests.
#pragma once

#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/abi/wire.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/runtime/flight/group_usage.h"
#include "csrc/runtime/peer_directory.h"

namespace pccl::comm {

class PeerView {
   public:
    virtual ~PeerView() = default;

    // These are thread-safe:

    [[nodiscard]] virtual const runtime::PeerDirectory& directory() const = 0;
    /// Returns the rank that a thread waits for, or last waited for, while the group is created, or
    /// to which it connects. kNoRank: none.
    [[nodiscard]] virtual Rank reaching() const = 0;
    /// Requests the status of `rank` from itself: kPeerLost if it is gone, kTimeout if it is silent
    /// until `deadline`. The peers must be registered, as for the next function.
    [[nodiscard]] virtual Result<RankStatus> query(Rank rank, Deadline deadline) const = 0;
    /// Sends `rank` the reason why this rank leaves, on a new connection.
    virtual Status notify(Rank rank, const Status& reason, Deadline deadline) const = 0;

    // These require the group's lock:

    /// Returns why a peer (any, or this one) is gone, by the segment and the links.
    [[nodiscard]] virtual Status look() = 0;
    [[nodiscard]] virtual Status look(Rank rank) = 0;
    /// Returns the failure because of which a linked peer has left. A peer that finished with the
    /// group is no failure for ranks that do not wait for it.
    [[nodiscard]] virtual Status look_for_failure() = 0;
    /// Returns whether the actions of ranks are visible in shared memory.
    [[nodiscard]] virtual bool has_segment() const = 0;
    [[nodiscard]] virtual bool has_link_from(Rank rank) = 0;
    /// Returns the network paths of links to other ranks.
    [[nodiscard]] virtual std::vector<runtime::PeerPath> paths() const = 0;
    /// Returns whether a link has arrived from any rank since operations last made progress.
    [[nodiscard]] virtual bool has_new_link() const = 0;
    /// Returns kMismatch if another rank has sent data that this rank did not take, because it
    /// called another collective under the number of `ours`. This rank must not be waiting.
    [[nodiscard]] virtual Status compare_latest(const abi::CollectiveHeader& ours) = 0;
};

}  // namespace pccl::comm
