// SPDX-License-Identifier: Apache-2.0

// Pool of a group's links, keyed by peer and channel; each is connected on first use.
//
// This side connects its send links; receive links arrive when peers connect. Members require the
// group's lock; the background thread calls accepted().
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/abi/wire.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/runtime/flight/group_usage.h"
#include "csrc/runtime/peer_directory.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

class ConnectionContext final : public LinkTable {
   public:
    /// Keeps references to `runtime` and `peers`, which must outlive it. The ranks of `peers` must
    /// be registered before the first connect.
    ConnectionContext(runtime::Runtime& runtime, const runtime::PeerDirectory& peers);

    Result<transport::SendLink*> send_link(const schedule::PeerPort& to) override;
    transport::RecvLink* receive_link(const schedule::PeerPort& from) override;
    /// Returns the peers without a link of channel 0 in either direction, nearest first, so that
    /// different ranks begin with different neighbours.
    [[nodiscard]] std::vector<Rank> unlinked();

    // These implement PeerView by the state of links:

    [[nodiscard]] std::vector<runtime::PeerPath> paths() const;
    [[nodiscard]] Status look();
    [[nodiscard]] Status look(Rank peer);
    [[nodiscard]] Status look_for_failure();
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader& ours);

    /// Notes that operations in flight continue with all links that have arrived so far.
    void note_arrivals() { noted_arrivals_ = arrivals_.load(std::memory_order_acquire); }
    /// Returns whether a link has arrived from a peer since then.
    [[nodiscard]] bool has_new_link() const {
        return arrivals_.load(std::memory_order_acquire) != noted_arrivals_;
    }
    /// Sets the generation of network links. Older links are released, and refused when a peer
    /// connects. Newer links wait here; those of this generation come into use now. Shared memory
    /// has no generation. No operation may be in flight.
    void renew(std::uint32_t generation);
    /// Closes all links permanently. Peers detect the loss of this rank after they have read all
    /// that it sent.
    void close(const Status& reason);

    // These are thread-safe:

    /// Returns the rank to which this one connects; kNoRank: none.
    [[nodiscard]] Rank reaching() const { return reaching_.load(std::memory_order_relaxed); }
    void accepted(const transport::LinkRequest& request, std::unique_ptr<transport::RecvLink> link);

   private:
    /// State of a link that is being opened.
    struct Attempt {
        runtime::Runtime::TransportRoute way;
        std::unique_ptr<transport::PendingConnect> pending_connect;
        Deadline deadline = Deadline::never();
        TimePoint looked{};
        transport::TransportFlags failed{};  // transports that failed before
        Status failure{};                    // error of the failed transports
    };
    Result<Attempt> begin(const schedule::PeerPort& to,
                          transport::TransportFlags failed = {}) const;
    /// Retries with the next transport, after one that did not reach the peer. Returns false if
    /// there is none.
    bool try_next_transport(const schedule::PeerPort& to, const Status& failure);
    /// Returns null until the peer has accepted.
    Result<std::unique_ptr<transport::SendLink>> open(const schedule::PeerPort& to);
    Result<std::unique_ptr<transport::SendLink>> go_on(const schedule::PeerPort& to);

    /// Checks that the request is for a link of this group to this rank, and not from an older
    /// phase of the network.
    [[nodiscard]] Status belongs(const transport::LinkRequest& request) const;
    [[nodiscard]] std::uint32_t generation() const { return generation_.load(); }
    void release_network_links();
    // These require mutex_:
    void store_link(const schedule::PeerPort& from, std::unique_ptr<transport::RecvLink> link);

    runtime::Runtime& runtime_;
    const runtime::PeerDirectory& peers_;
    std::atomic<Rank> reaching_{kNoRank};
    std::map<schedule::PeerPort, Attempt> attempts_;
    std::map<schedule::PeerPort, std::unique_ptr<transport::SendLink>> senders_;
    std::vector<transport::SendLink*>
        first_senders_;  // channel 0, indexed by peer: the hot path needs no search
    std::atomic<std::uint32_t> generation_{0};
    std::atomic<std::uint64_t> arrivals_{0};  // number of links from peers so far
    std::uint64_t noted_arrivals_ = 0;
    std::mutex mutex_;  // guards receivers_, retired_, early_ and closed_
    std::map<schedule::PeerPort, std::unique_ptr<transport::RecvLink>> receivers_;
    std::vector<std::unique_ptr<transport::RecvLink>> retired_;  // replaced, possibly still in use
    std::vector<std::atomic<transport::RecvLink*>> first_receivers_;
    struct Early {
        std::uint32_t generation = 0;
        std::unique_ptr<transport::RecvLink> link;
    };
    std::map<schedule::PeerPort, Early> early_;  // from a phase that this rank has not entered yet
    Status closed_;                              // the reason, for peers that connect later
};

}  // namespace pccl::comm
