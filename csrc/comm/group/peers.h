// SPDX-License-Identifier: Apache-2.0

// The other ranks of a group: one view of its links, its segment and the control plane.
//
// Members require the group's lock, except where noted.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "csrc/bootstrap/roster.h"
#include "csrc/comm/diagnosis/peer_view.h"
#include "csrc/comm/links/connection_context.h"
#include "csrc/comm/shm/shm_segment.h"
#include "csrc/comm/shm/shm_setup.h"
#include "csrc/runtime/peer_directory.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {

class Peers final : public PeerView {
   public:
    /// Uses `runtime`, which must outlive it.
    Peers(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
          runtime::PeerDirectory::Self self);

    /// Connects the group; call it once, before anything is sent. When all ranks share this host,
    /// waits until all have opened the segment (see segment()); errors are kTimeout and kPeerLost.
    /// `is_there` of `vote` is ignored.
    Status connect(const bootstrap::Roster& roster, ShmSetup::MemoryVote vote, Deadline deadline);
    /// Returns the group's shared-memory segment, or null.
    [[nodiscard]] ShmSegment* segment() const { return segment_.get(); }
    [[nodiscard]] LinkTable& links() { return links_; }
    void note_arrivals() { links_.note_arrivals(); }
    /// Returns the peers that cannot be notified of a failure over a link or the segment, nearest
    /// first.
    [[nodiscard]] std::vector<Rank> out_of_reach();
    /// Calls ConnectionContext::renew().
    void renew(std::uint32_t generation) { links_.renew(generation); }
    /// Detaches from the segment, then closes all links permanently. Peers detect the loss of this
    /// rank after they have read all that it sent.
    void close(const Status& reason);

    // These are thread-safe:

    [[nodiscard]] const runtime::PeerDirectory& directory() const override { return directory_; }
    [[nodiscard]] Rank reaching() const override;
    [[nodiscard]] Result<RankStatus> query(Rank peer, Deadline deadline) const override {
        return query(directory_.endpoint(peer), deadline);
    }
    /// Requests the status of a process that may not have joined yet.
    [[nodiscard]] Result<RankStatus> query(const bootstrap::Endpoint& peer,
                                           Deadline deadline) const;
    /// Requests the status of ranks that are still joining: kPeerLost for one that is gone.
    [[nodiscard]] Status look_at(std::span<const bootstrap::Endpoint> joined) const;
    Status notify(Rank peer, const Status& reason, Deadline deadline) const override;
    void accepted(const transport::LinkRequest& request,
                  std::unique_ptr<transport::RecvLink> link) {
        links_.accepted(request, std::move(link));
    }
    void accepted(const transport::LinkRequest& request,
                  std::unique_ptr<transport::Region> region) {
        shm_setup_.accepted(request, std::move(region));
    }
    /// Ends waits for regions, because nothing more will be accepted.
    void fall_short(const Status& why) { shm_setup_.fall_short(why); }

    // These implement PeerView:

    [[nodiscard]] Status look() override;
    [[nodiscard]] Status look(Rank peer) override;
    [[nodiscard]] Status look_for_failure() override;
    [[nodiscard]] bool has_segment() const override { return segment_ != nullptr; }
    [[nodiscard]] bool has_link_from(Rank peer) override {
        return links_.receive_link({peer, 0}) != nullptr;
    }
    [[nodiscard]] std::vector<runtime::PeerPath> paths() const override { return links_.paths(); }
    [[nodiscard]] bool has_new_link() const override { return links_.has_new_link(); }
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader& ours) override;

   private:
    runtime::PeerDirectory directory_;
    ShmSetup shm_setup_;
    ConnectionContext links_;
    std::unique_ptr<ShmSegment> segment_;
};

}  // namespace pccl::comm
