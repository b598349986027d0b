// SPDX-License-Identifier: Apache-2.0

// Accepting side of the handshake: a listening socket and its pending handshakes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/handshake_host.h"

namespace pccl::transport {

class ServerHandshake;

struct HandshakeServerOptions {
    std::string_view transport_name = "tcp";  // for HandshakeHost::refused()
    sys::StreamOptions stream = {};
    /// At most this many handshakes run, and fewer in a process of few descriptors. When another
    /// connection waits, the oldest client that has sent nothing is put off: it may begin again.
    std::size_t most_pending = 1024;
    /// Limit of a handshake: the server refuses one that takes longer.
    Duration timeout = std::chrono::seconds(5);
    /// Limit while most_pending clients have begun their hello: the oldest is put off once it has
    /// taken this long (unset: chosen so that the kernel's whole queue is served within 0.6 s).
    std::optional<Duration> timeout_when_crowded = {};
    /// Limit while descriptors are exhausted.
    Duration timeout_when_starved = std::chrono::milliseconds(500);
    /// Secret that onlookers prove (inquiry.h); without one they are strangers.
    std::optional<Secret> onlookers = {};
    const Clock* clock = &system_clock();
};

/// Server of handshakes. One thread at a time.
class PCCL_API HandshakeServer {
   public:
    /// Callback that takes ownership of a socket whose peer has proven itself and was sent its
    /// acceptance.
    using Welcome = std::function<void(UniqueFd, const Introduction&)>;

    static Result<std::unique_ptr<HandshakeServer>> listen(const sys::Address& address,
                                                           const HandshakeServerOptions& options);
    ~HandshakeServer();
    HandshakeServer(const HandshakeServer&) = delete;
    HandshakeServer& operator=(const HandshakeServer&) = delete;

    [[nodiscard]] const sys::Address& address() const { return address_; }
    /// Returns a descriptor that is readable when advance() has something to do.
    [[nodiscard]] int poll_fd() const { return epoll_.get(); }
    /// Returns why there are no descriptors left, while a connection uses the reserved one: such a
    /// connection carries only services that need no other. ok otherwise.
    [[nodiscard]] const Status& shortage() const { return shortage_; }

    /// Makes progress on all handshakes without blocking. Failed ones go to host.refused().
    void advance(HandshakeHost& host, const Welcome& welcome);
    [[nodiscard]] std::size_t pending() const { return pending_.size(); }

   private:
    using Pending = std::vector<std::unique_ptr<ServerHandshake>>;

    explicit HandshakeServer(const HandshakeServerOptions& options);
    Status start();
    /// Makes poll_fd() readable when `fd` is, until unwatch().
    Status watch(int fd, ServerHandshake* handshake);
    void unwatch(int fd);
    [[nodiscard]] bool is_full() const { return pending_.size() >= options_.most_pending; }
    void step_ready(HandshakeHost& host, const Welcome& welcome);
    /// Returns false when the handshake has ended, accepted or refused.
    bool step(ServerHandshake& handshake, HandshakeHost& host, const Welcome& welcome);
    void admit(HandshakeHost& host, const Welcome& welcome);
    Result<std::optional<UniqueFd>> accept_one(HandshakeHost& host);
    Status let_in(UniqueFd client, HandshakeHost& host, const Welcome& welcome);
    Pending::iterator oldest_silent();
    /// Returns end() where no handshake qualifies: a client that has sent bytes keeps its slot for
    /// `timeout`.
    Pending::iterator which_to_put_off(Duration timeout);
    /// Ends the handshake.
    void refuse(const ServerHandshake& which, const Status& why, HandshakeHost& host);
    void put_off(const ServerHandshake& which, HandshakeHost& host);
    void put_off(Pending::iterator which, HandshakeHost& host);
    void keep_spare();
    void expire(HandshakeHost& host);
    void block(Duration timeout) { blocked_for_ = timeout; }
    void pause_accepting(bool pause);
    void set_alarm(Duration until);

    const HandshakeServerOptions options_;
    sys::Address address_;
    OtherSecrets secrets_;
    UniqueFd listener_;
    UniqueFd epoll_;
    UniqueFd alarm_;   // timerfd: deadline of the next handshake to give up on
    UniqueFd spare_;   // reserve, closed to serve a peer when no other descriptor is left
    Status shortage_;  // set during that
    bool paused_ = false;
    /// Set when full, or out of descriptors: no accepting until the oldest handshake has taken this
    /// long.
    std::optional<Duration> blocked_for_;
    bool is_shortage_reported_ = false;  // whether the shortage of descriptors is reported
    Pending pending_;                    // oldest first
};

}  // namespace pccl::transport
