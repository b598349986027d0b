// SPDX-License-Identifier: Apache-2.0

// Sending end of a link over several paths.
//
// The link begins with one path. The others join it once they have connected, in whatever time that
// takes, and a lost one joins it again: each attempt is a handshake of its own.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/sys/socket/path_counters.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/link.h"
#include "csrc/transport/peer_watch.h"
#include "csrc/transport/sticky_status.h"
#include "csrc/transport/tcp/path_keeper.h"
#include "csrc/transport/tcp/path_route.h"
#include "csrc/transport/tcp/piece_sender.h"
#include "csrc/transport/tcp/wire.h"

namespace pccl::transport::tcp {

/// Everything that the sockets of a link over several paths have in common.
struct PathsOfLink {
    std::vector<PathRoute> routes{};  // the first one begins the link
    LinkRequest request{};
    Secret secret{};
    sys::StreamOptions stream{};
    std::chrono::milliseconds peer_timeout{};
    SocketPurpose purpose{};  // of the first socket

    /// Returns the introductions of the sockets of one path.
    [[nodiscard]] std::vector<Introduction> introductions(std::size_t path,
                                                          std::uint32_t attempt) const;
};

class SendPaths final : public KeptLink {
   public:
    SendPaths(PathsOfLink paths, std::string peer_name, Waiter& waiter,
              const std::shared_ptr<PathKeeper>& keeper, std::shared_ptr<PathLog> log);

    /// Takes the sockets of a path that has connected.
    Status take(std::size_t path, std::vector<UniqueFd> sockets);

    Result<std::size_t> send(ChannelId channel, std::span<const Bytes> parts, Flush flush);
    Result<bool> flush(ChannelId channel);
    Status look();
    /// Returns the counters of each path that has joined.
    [[nodiscard]] std::vector<sys::NetworkPath> paths();
    void abort(const Status& reason);
    /// Ends the link; the keeper holds it (`own`) until the peer's host has everything.
    void end(const std::shared_ptr<SendPaths>& own);
    bool close() override;
    Duration look_after(TimePoint now) override;

   private:
    struct PathAttempt {
        std::unique_ptr<HandshakeClient> client{};
        Deadline deadline = Deadline::never();
        std::uint32_t number = 0;
        TimePoint next{};  // when the next one is due
        Duration pause{};  // after it
    };
    struct SendPath {
        PathRoute route;
        bool has_joined = false;
        bool is_silent = false;
        TimePoint silent_since{};
        PathAttempt attempt{};
    };

    Status use(std::size_t path, std::vector<UniqueFd> sockets);
    [[nodiscard]] std::size_t data_sockets() const { return paths_.purpose.data_sockets; }
    /// Calls act(sender, index) for each socket of a path.
    template <typename Act>
    void for_each_socket(std::size_t path, Act act);
    void kick() const;
    Status fail(const Status& fault);
    [[nodiscard]] bool any_other_answers(std::size_t path, TimePoint now);
    /// Returns whether the path carries its data; notices changes.
    bool check(std::size_t path, TimePoint now);
    void set_silent(std::size_t path, bool is_silent, TimePoint now);
    /// Starts to connect a path again, or goes on; returns when the next call is due.
    Duration connect(std::size_t path, TimePoint now);
    void begin_attempt(SendPath& path, std::size_t number, TimePoint now);
    void end_attempt(SendPath& path, const Status& why);
    [[nodiscard]] std::vector<const PathRoute*> others(std::size_t path) const;

    const PathsOfLink paths_;
    const std::string peer_name_;
    Waiter& waiter_;
    const std::weak_ptr<PathKeeper> keeper_;  // of the transport
    const std::shared_ptr<PathLog> log_;
    std::mutex mutex_;  // guards the next members
    std::vector<SendPath> states_;
    std::deque<PieceSender> senders_;  // by channel
    PeerWatch watch_;
    StickyStatus status_;
};

class MultipathSendLink final : public SendLink {
   public:
    explicit MultipathSendLink(std::shared_ptr<SendPaths> paths) : paths_(std::move(paths)) {}
    MultipathSendLink(const MultipathSendLink&) = delete;
    MultipathSendLink& operator=(const MultipathSendLink&) = delete;
    ~MultipathSendLink() override;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }
    [[nodiscard]] std::size_t capacity(ChannelId channel) const override;
    Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush) override {
        return paths_->send(channel, {&bytes, 1}, flush);
    }
    Result<std::size_t> send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                      Flush flush) override {
        return paths_->send(channel, pieces, flush);
    }
    Result<bool> flush(ChannelId channel) override { return paths_->flush(channel); }
    Status look() override { return paths_->look(); }
    [[nodiscard]] std::vector<sys::NetworkPath> paths() override { return paths_->paths(); }
    void abort(const Status& reason) override { paths_->abort(reason); }

   private:
    const std::shared_ptr<SendPaths> paths_;
};

}  // namespace pccl::transport::tcp
