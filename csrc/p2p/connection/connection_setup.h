// SPDX-License-Identifier: Apache-2.0

// Setup of a connection: two streams, the handshake on them (handshake.h), and the route that
// results.
//
// Each side connects the stream on which it sends; the caller does so first. Nothing here blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/p2p/connection/handshake.h"
#include "csrc/p2p/connection/lane_count.h"
#include "csrc/p2p/transfers/plan.h"
#include "csrc/runtime/flight/session_recorder.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::p2p {

/// Route to a peer, with the reasons why it is not a faster one.
struct ConnectionRoute {
    transport::TransportKind kind = transport::TransportKind::kShm;
    /// Whether each side copies by itself, or by its RDMA device. Otherwise the peer serves
    /// requests.
    bool is_direct = false;
    std::string reasons{};

    /// Returns whether threads of this process copy: no event announces the end.
    [[nodiscard]] bool is_copied_here() const {
        return is_direct && kind == transport::TransportKind::kShm;
    }
};

/// Returns the path that the blocks of a plan take; docs/reference/p2p.md lists all of them.
[[nodiscard]] runtime::SessionPath route_of(const ConnectionRoute& route, const Plan& plan);

/// Parts that this process contributes.
struct OwnSide {
    runtime::Runtime& runtime;
    const ConnectionInfo& info;
    transport::TransportFlags allowed;
    bootstrap::CoreClaim cores;
};

/// Returns the request for a stream to a session.
[[nodiscard]] transport::LinkRequest request_to(const ConnectionInfo& peer);

class ConnectionSetup {
   public:
    /// Begins to connect. Returns kUnavailable, with the reasons, where no transport leads to
    /// `peer`. `wanted` is ok for a direct connection; an error means a fallback connection, for
    /// memory that this process cannot copy by itself, and gives the reason. `ended` goes into the
    /// hello.
    static Result<std::unique_ptr<ConnectionSetup>> begin(const OwnSide& own,
                                                          const ConnectionInfo& peer,
                                                          const Status& wanted,
                                                          std::vector<std::uint64_t> ended);
    /// Begins an answer. `in` is the stream on which the hello arrived.
    static Result<std::unique_ptr<ConnectionSetup>> answer(const OwnSide& own, const Hello& hello,
                                                           std::unique_ptr<transport::RecvLink> in);

    /// Returns whether this is a fallback connection, beside the direct one, if any.
    [[nodiscard]] bool is_fallback() const { return is_fallback_; }
    /// Returns the number from the hello, which names the connection at both ends.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// Returns whether the peer's stream has not arrived yet.
    [[nodiscard]] bool awaits_answer() const { return streams_.in == nullptr; }
    void welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in);
    /// Returns true once both streams are there and the handshake is sent.
    Result<bool> advance();
    /// Returns kTimeout with the step that the peer has not done.
    [[nodiscard]] Status timeout_error() const;
    /// Ends the setup and notifies the peer.
    void give_up(const Status& reason);

    // Valid once advance() has returned true:

    [[nodiscard]] const ConnectionRoute& route() const { return route_; }
    [[nodiscard]] transport::RmaStreams take_streams() { return std::move(streams_); }
    /// Returns how many lanes both sides allow, and the helper threads of this one.
    [[nodiscard]] const LaneCount& lanes() const { return lanes_; }

   private:
    ConnectionSetup(std::unique_ptr<transport::PendingConnect> pending_connect,
                    std::uint64_t number, ConnectionRoute route)
        : pending_connect_(std::move(pending_connect)), number_(number), route_(std::move(route)) {}
    static Result<std::unique_ptr<ConnectionSetup>> start_connect(const ConnectionInfo& peer,
                                                                  transport::Transport& transport,
                                                                  std::uint64_t number,
                                                                  ConnectionRoute route);
    /// Applies the claim of the peer.
    void count_lanes(const OwnSide& own, const ConnectionInfo& peer,
                     const bootstrap::CoreClaim& cores);
    /// State from which a caller begins again by another transport.
    struct SetupAttempt {
        OwnSide own;
        ConnectionInfo peer;
        Status wanted;
        std::vector<std::uint64_t> ended;
        transport::TransportFlags failed{};  // transports that did not reach the peer
        Status failure{};                    // of the first of them
    };
    static Result<std::unique_ptr<ConnectionSetup>> begin(SetupAttempt attempt,
                                                          std::uint64_t number);
    /// Returns false when no other transport is left.
    bool try_next_transport(const Status& failure);
    Result<bool> send_handshake();

    std::unique_ptr<transport::PendingConnect> pending_connect_;  // null once connected
    transport::RmaStreams streams_;
    const std::uint64_t number_;
    ConnectionRoute route_;
    bool is_fallback_ = false;
    LaneCount lanes_;
    std::optional<SetupAttempt> attempt_;  // of the caller only
    std::string handshake_;                // to be sent
    std::size_t sent_bytes_ = 0;           // bytes of handshake_
};

}  // namespace pccl::p2p
