// The other ranks of a group, as a diagnosis sees them: by what links and the segment show, and by
// what they say when they are asked.
#pragma once

#include "csrc/abi/wire.h"
#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/runtime/peer_directory.h"

namespace pccl::comm {

class PeerView {
   public:
    virtual ~PeerView() = default;

    // From any thread:

    [[nodiscard]] virtual const runtime::PeerDirectory& directory() const = 0;
    /// The rank that a thread waits for, or has waited for in vain, while the group is being made;
    /// or to which it connects. kNoRank: none.
    [[nodiscard]] virtual Rank reaching() const = 0;
    /// How `rank` fares, from itself: kPeerLost where it is gone, kTimeout where it is silent until
    /// `deadline`. Once the peers are registered, as the next one.
    [[nodiscard]] virtual Result<RankStatus> ask(Rank rank, Deadline deadline) const = 0;
    /// Tells `rank`, on a connection of its own, why this rank leaves.
    virtual Status tell(Rank rank, const Status& reason, Deadline deadline) const = 0;

    // Under the group's lock:

    /// Why a peer is gone, as far as the segment and the links show it: any, or this one.
    [[nodiscard]] virtual Status look() = 0;
    [[nodiscard]] virtual Status look(Rank rank) = 0;
    /// What made any peer leave that has a link to this one, where it was a failure: a peer that is
    /// just done with the group is no concern of those who do not wait for it.
    [[nodiscard]] virtual Status look_for_failure() = 0;
    /// Whether what ranks do shows in shared memory.
    [[nodiscard]] virtual bool has_segment() const = 0;
    [[nodiscard]] virtual bool has_link_from(Rank rank) = 0;
    /// Whether a link has come from any rank since operations were last carried on.
    [[nodiscard]] virtual bool has_new_link() const = 0;
    /// Of a rank that waits for nothing: kMismatch where another has given it something that the
    /// rank did not take, as it called another collective under that number: `ours`.
    [[nodiscard]] virtual Status compare_latest(const abi::CollectiveHeader& ours) = 0;
};

}  // namespace pccl::comm
