// SPDX-License-Identifier: Apache-2.0

// Reliable connection (RC) of two RDMA ports.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <pccl/status.h>
#include "csrc/sys/verbs/connection_manager.h"
#include "csrc/transport/verbs/adapter.h"
#include "csrc/transport/verbs/port.h"

namespace pccl::transport::verbs {

/// Sizes of a queue pair.
struct QueueDepths {
    int sends = 128;    // work requests in the send queue
    int receives = 64;  // receive requests
    int pieces = 1;     // memory pieces of a send request
};

/// Address of one end of a queue pair: everything that the other end needs for a connection.
struct QueuePairAddress {
    std::uint32_t number = 0;    // QPN, 24 bits
    std::uint32_t sequence = 0;  // first PSN, 24 bits
    std::uint16_t lid = 0;
    sys::verbs::RawGid gid{};
    std::uint8_t mtu = 0;    // ibv_mtu
    std::uint8_t reads = 0;  // outstanding reads as their target
    bool is_ethernet = false;

    bool operator==(const QueuePairAddress&) const = default;
};

/// One thread at a time.
class QueuePair {
   public:
    /// Short messages that leave with their work request.
    static constexpr std::uint32_t kInlineBytes = 192;
    static constexpr std::uint32_t kLeastInline = 32;

    /// Creates a queue pair in the state INIT, whose receives can be posted.
    static Result<std::unique_ptr<QueuePair>> create(std::shared_ptr<Port> port,
                                                     const QueueDepths& depths);
    ~QueuePair();
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    [[nodiscard]] const QueuePairAddress& address() const { return address_; }
    [[nodiscard]] const Port& port() const { return *port_; }
    [[nodiscard]] const std::shared_ptr<Port>& shared_port() const { return port_; }
    [[nodiscard]] std::uint32_t inline_bytes() const { return inline_bytes_; }
    [[nodiscard]] const QueueDepths& depths() const { return depths_; }
    /// Connects to the other end: both may send once both have done this.
    Status connect(const QueuePairAddress& peer);
    /// Moves the pair to the state of attributes that rdma_cm has made; settings of this process
    /// and limits of this end come before theirs.
    Status enter(ibv_qp_attr attributes, int mask, const QueuePairAddress& peer);
    /// Returns how many outstanding reads this end may have at the peer.
    [[nodiscard]] std::uint8_t reads_at(const QueuePairAddress& peer) const;
    /// Keeps the connection of the pair by rdma_cm as long as the pair.
    void keep(sys::verbs::CmId connection) { connection_.emplace(std::move(connection)); }
    [[nodiscard]] bool is_iwarp() const { return port_->is_iwarp(); }
    /// Moves the pair to the state ERROR: no write of the peer arrives any more, and all requests
    /// complete.
    void fail();

    /// Posts a chain of send requests with one doorbell. The caller keeps within the depth.
    Status post(ibv_send_wr& first);
    /// Posts receives without memory, for immediates, with one doorbell.
    Status post_receives(int count);
    /// Returns the next completion; polls the queue where the inbox is empty. nullopt: none now.
    Result<std::optional<WorkCompletion>> next();

    /// Ids of receive requests.
    static constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;

   private:
    QueuePair(std::shared_ptr<Port> port, const QueueDepths& depths)
        : port_(std::move(port)),
          depths_(depths),
          inbox_(static_cast<std::size_t>(depths.sends + depths.receives)) {}
    Status create_pair();
    Status initialise();
    [[nodiscard]] Status modify(ibv_qp_attr& attributes, int mask, const char* step) const;

    const std::shared_ptr<Port> port_;
    const QueueDepths depths_;
    CompletionInbox inbox_;
    CompletionQueue* queue_ = nullptr;            // of the port's adapter
    std::optional<sys::verbs::CmId> connection_;  // outlives the pair
    sys::verbs::Handle<ibv_qp> pair_;
    std::uint32_t inline_bytes_ = 0;
    QueuePairAddress address_;
};

/// Returns what a failed completion means, with where to look: "no acknowledgement came:
/// the peer's process or port, or the path to it, is gone (completion status 12, ...)".
[[nodiscard]] std::string explain(const WorkCompletion& completion);

}  // namespace pccl::transport::verbs
