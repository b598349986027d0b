// A group's pool of links, keyed by peer and channel: connected when first needed.
//
// This side connects the links on which it sends; those on which it receives turn up when peers
// connect. Members are called under the group's lock; accepted() comes from the background thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/base/clock.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/runtime/peer_directory.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

class ConnectionContext final : public LinkTable {
   public:
    /// `runtime` and `peers`, whose ranks are registered before any is connected to, outlive it.
    ConnectionContext(runtime::Runtime& runtime, const runtime::PeerDirectory& peers);

    Result<transport::SendLink*> send_link(const schedule::Port& to) override;
    transport::RecvLink* receive_link(const schedule::Port& from) override;
    /// The peers without a link of channel 0 to or from here. Nearest first: the neighbours of one
    /// rank are not all of them those of another.
    [[nodiscard]] std::vector<Rank> unlinked();

    // As PeerView has them, as far as links show it:

    [[nodiscard]] Status look();
    [[nodiscard]] Status look(Rank peer);
    [[nodiscard]] Status look_for_failure();
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader& ours);

    /// Those that are under way go on with all links that have come so far.
    void note_arrivals() { noted_arrivals_ = arrivals_.load(std::memory_order_acquire); }
    /// Whether one has come from a peer since then.
    [[nodiscard]] bool has_new_link() const {
        return arrivals_.load(std::memory_order_acquire) != noted_arrivals_;
    }
    /// From now on links over a network are those of this generation: older ones are released, and
    /// refused where a peer connects; of newer ones, which wait here until this is called, those
    /// of this one come into use. Memory that ranks share has no generation. Nothing is under way.
    void renew(std::uint32_t generation);
    /// Releases all links, for good; peers see this rank as lost once they have read what it sent.
    void close(const Status& reason);

    // From any thread:

    /// The rank to which this one connects; kNoRank: none.
    [[nodiscard]] Rank reaching() const { return reaching_.load(std::memory_order_relaxed); }
    void accepted(const transport::LinkRequest& request, std::unique_ptr<transport::RecvLink> link);

   private:
    /// Of a link that is being opened.
    struct Attempt {
        runtime::Runtime::TransportRoute way;
        std::unique_ptr<transport::PendingConnect> pending_connect;
        Deadline deadline = Deadline::never();
        TimePoint looked{};
        transport::TransportFlags failed{};  // before this one
        Status failure{};                    // of those
    };
    Result<Attempt> begin(const schedule::Port& to, transport::TransportFlags failed = {}) const;
    /// Begins again by the next transport, after one by which the peer was not reached; false when
    /// there is none.
    bool try_next_transport(const schedule::Port& to, const Status& failure);
    /// Null until the peer has accepted.
    Result<std::unique_ptr<transport::SendLink>> open(const schedule::Port& to);
    Result<std::unique_ptr<transport::SendLink>> go_on(const schedule::Port& to);

    /// Whether it asks for a link of this group, to this rank, of no older phase of the network
    /// than it is in.
    [[nodiscard]] Status belongs(const transport::LinkRequest& request) const;
    [[nodiscard]] std::uint32_t generation() const { return generation_.load(); }
    void release_network_links();
    // Under mutex_:
    void take(const schedule::Port& from, std::unique_ptr<transport::RecvLink> link);

    runtime::Runtime& runtime_;
    const runtime::PeerDirectory& peers_;
    std::atomic<Rank> reaching_{kNoRank};
    std::map<schedule::Port, Attempt> attempts_;
    std::map<schedule::Port, std::unique_ptr<transport::SendLink>> senders_;
    std::vector<transport::SendLink*>
        first_senders_;  // of channel 0, by peer: no search on the hot path
    std::atomic<std::uint32_t> generation_{0};
    std::atomic<std::uint64_t> arrivals_{0};  // of links from peers, so far
    std::uint64_t noted_arrivals_ = 0;
    std::mutex mutex_;  // guards receivers_, retired_, early_ and closed_
    std::map<schedule::Port, std::unique_ptr<transport::RecvLink>> receivers_;
    std::vector<std::unique_ptr<transport::RecvLink>> retired_;  // replaced, perhaps still in use
    std::vector<std::atomic<transport::RecvLink*>> first_receivers_;
    struct Early {
        std::uint32_t generation = 0;
        std::unique_ptr<transport::RecvLink> link;
    };
    std::map<schedule::Port, Early> early_;  // of a phase that this rank is not in yet
    Status closed_;                          // why, for peers that connect later
};

}  // namespace pccl::comm
