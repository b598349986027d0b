// A connection that is being made: two streams, and what is sent first on them (handshake.h).
//
// Either side connects the stream that it sends on, the caller first. Nothing here blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/p2p/handshake.h"
#include "csrc/p2p/route.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {

/// What this process brings.
struct OwnSide {
    runtime::Runtime& runtime;
    const ConnectionInfo& info;
    transport::TransportFlags allowed;
};

class ConnectionSetup {
   public:
    /// kUnavailable, with the reasons, where no transport leads to `peer`. Unless `wanted` is ok,
    /// it is for memory that this process does not copy by itself, and why. `ended` is that of the
    /// hello.
    static Result<std::unique_ptr<ConnectionSetup>> call(const OwnSide& own,
                                                         const ConnectionInfo& peer,
                                                         const Status& wanted,
                                                         std::vector<std::uint64_t> ended);
    /// `in` is the stream that the hello came on.
    static Result<std::unique_ptr<ConnectionSetup>> answer(const OwnSide& own, const Hello& hello,
                                                           std::unique_ptr<transport::RecvLink> in);

    /// Beside the connection, if any, on which both copy by themselves.
    [[nodiscard]] bool is_fallback() const { return is_fallback_; }
    /// Names the connection for both; that of the hello.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    void welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in);
    /// True once both streams are there, and all is sent.
    Result<bool> advance();
    /// kTimeout, and what the peer has not done.
    [[nodiscard]] Status timeout_error() const;
    /// Tells the peer.
    void give_up(const Status& reason);

    // Once it is whole:

    [[nodiscard]] const Route& route() const { return route_; }
    [[nodiscard]] transport::RmaStreams take_streams() { return std::move(streams_); }

   private:
    ConnectionSetup(std::unique_ptr<transport::PendingConnect> pending_connect,
                    std::uint64_t number, Route route)
        : pending_connect_(std::move(pending_connect)), number_(number), route_(std::move(route)) {}
    static Result<std::unique_ptr<ConnectionSetup>> start_connect(const ConnectionInfo& peer,
                                                                  transport::Transport& transport,
                                                                  std::uint64_t number,
                                                                  Route route);
    /// What a caller needs to begin again by another transport.
    struct Attempt {
        OwnSide own;
        ConnectionInfo peer;
        Status wanted;
        std::vector<std::uint64_t> ended;
        transport::TransportFlags failed{};  // by which the peer was not reached
        Status failure{};                    // of the first of them
    };
    static Result<std::unique_ptr<ConnectionSetup>> begin(Attempt attempt, std::uint64_t number);
    /// False when there is no other transport.
    bool try_next_transport(const Status& failure);
    Result<bool> send_handshake();

    std::unique_ptr<transport::PendingConnect> pending_connect_;  // until it has given the stream
    transport::RmaStreams streams_;
    const std::uint64_t number_;
    Route route_;
    bool is_fallback_ = false;
    std::optional<Attempt> attempt_;  // of the caller
    std::string handshake_;           // to be sent
    std::size_t sent_bytes_ = 0;      // bytes of it
};

}  // namespace pccl::p2p
