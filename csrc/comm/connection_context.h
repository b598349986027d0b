// A group's pool of links, keyed by peer and channel: connected when first needed.
//
// This side connects the links on which it sends; those on which it receives turn up when peers
// connect. Sending members are called under the group's lock; accepted() comes from the background
// thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/wait_notice.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/comm/board/board.h"
#include "csrc/comm/diagnosis/situation.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::comm {

class ConnectionContext final : public LinkTable {
   public:
    struct Member {
        Rank rank = 0;
        int size = 1;
        std::string group_name;
        transport::TransportFlags allowed;
    };

    ConnectionContext(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
                      Member self);

    /// The peers' endpoints: to be called once, before anything is sent. Where all ranks share this
    /// host, waits until all have opened a board (see board()); errors are kTimeout and kPeerLost.
    Status register_remote_infos(bootstrap::Roster roster, Deadline deadline);
    /// The group's board, or null.
    [[nodiscard]] Board* board() const { return board_.get(); }

    /// How `peer` fares, from itself; waits at most until `deadline`. From any thread, once the
    /// peers are registered.
    [[nodiscard]] Result<Situation> ask(Rank peer, Deadline deadline) const {
        return ask(endpoint(peer), deadline);
    }
    [[nodiscard]] Result<Situation> ask(const bootstrap::Endpoint& peer, Deadline deadline) const;
    /// False while the group is being made.
    [[nodiscard]] bool knows_peers() const { return !roster_.endpoints.empty(); }
    [[nodiscard]] const bootstrap::Endpoint& endpoint(Rank peer) const {
        return roster_.endpoints[static_cast<std::size_t>(peer)];
    }
    /// The rank that a thread waits for, or has waited for in vain, while the group is being made;
    /// or to which it connects. From any thread.
    [[nodiscard]] Rank reaching() const { return reaching_.load(std::memory_order_relaxed); }
    /// ok, or why this rank could not reach `peer` if it were there.
    [[nodiscard]] Status way_to(Rank peer) const {
        return runtime_.way_to(endpoint(peer), self_.allowed).status();
    }
    /// The peers that a failure cannot be told to over a link or the board.
    [[nodiscard]] std::vector<Rank> out_of_reach();
    /// Whether a failure of `peer` shows here, on the board or a link from it.
    [[nodiscard]] bool has_way_from(Rank peer) {
        return board_ != nullptr || receive_link(peer, 0) != nullptr;
    }
    /// Tells one of them, on a connection of its own. From any thread.
    Status tell(Rank peer, const Status& reason, Deadline deadline) const;
    /// Why a peer is gone, as far as the board and the links show it: any, or this one.
    [[nodiscard]] Status look();
    [[nodiscard]] Status look(Rank peer);
    /// What made any peer leave that has a link to this one, where it was a failure: a peer that is
    /// just done with the group is no concern of those who do not wait for it.
    [[nodiscard]] Status look_for_failure();
    /// Of a rank that waits for nothing: kMismatch where another has given it something that the
    /// rank did not take, as it called another collective under that number: `ours`.
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader& ours);

    Result<transport::SendLink*> send_link(Rank peer, ChannelId channel) override;
    transport::RecvLink* receive_link(Rank peer, ChannelId channel) override;

    /// Releases all links, for good; peers see this rank as lost once they have read what it sent.
    void close(const Status& reason);

    void accepted(const transport::LinkRequest& request, std::unique_ptr<transport::RecvLink> link);
    void accepted(const transport::LinkRequest& request, std::unique_ptr<transport::Region> region);
    /// Nothing more is accepted; ends a wait for a region. From any thread.
    void fall_short(const Status& why) { static_cast<void>(shortage_.set(why)); }
    [[nodiscard]] const bootstrap::GroupIdentity& identity() const { return identity_; }

   private:
    using Key = std::pair<Rank, ChannelId>;

    [[nodiscard]] transport::LinkRequest request_to(Rank peer, ChannelId channel) const;
    /// Of a link that is being opened.
    struct Attempt {
        runtime::Runtime::Way way;
        std::unique_ptr<transport::Dial> dial;
        Deadline deadline = Deadline::never();
        TimePoint looked{};
    };
    Result<Attempt> begin(const Key& key) const;
    /// Null until the peer has accepted.
    Result<std::unique_ptr<transport::SendLink>> open(const Key& key);
    Result<std::unique_ptr<transport::SendLink>> go_on(const Key& key);
    [[nodiscard]] bool has_board() const;
    Result<std::unique_ptr<transport::Region>> share_region(Deadline deadline);
    Result<std::unique_ptr<transport::Region>> await_region(Deadline deadline);
    Status open_board(Deadline deadline);
    /// How long `peer` is waited for, if it is time to say so.
    void say_late(TimePoint since, Rank peer, std::string_view act);

    runtime::Runtime& runtime_;
    const bootstrap::GroupIdentity identity_;
    const Member self_;
    bootstrap::Roster roster_;
    std::atomic<Rank> reaching_{kNoRank};
    std::map<Key, Attempt> attempts_;
    std::map<Key, std::unique_ptr<transport::SendLink>> senders_;
    std::vector<transport::SendLink*>
        first_senders_;                 // of channel 0, by peer: no search on the hot path
    transport::StickyStatus shortage_;  // why nothing more is accepted
    std::mutex mutex_;                  // guards receivers_, region_ and closed_
    std::map<Key, std::unique_ptr<transport::RecvLink>> receivers_;
    std::vector<std::unique_ptr<transport::RecvLink>> retired_;  // replaced, perhaps still in use
    std::vector<std::atomic<transport::RecvLink*>> first_receivers_;
    Status closed_;                              // why, for peers that connect later
    std::unique_ptr<transport::Region> region_;  // arrived, not taken yet; guarded by mutex_
    std::unique_ptr<Board> board_;
    WaitNotice notice_;
};

}  // namespace pccl::comm
