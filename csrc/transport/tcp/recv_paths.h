// SPDX-License-Identifier: Apache-2.0

// Receiving end of a link over several paths.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/transport/link.h"
#include "csrc/transport/peer_watch.h"
#include "csrc/transport/sticky_status.h"
#include "csrc/transport/tcp/buffered_reader.h"
#include "csrc/transport/tcp/piece_reader.h"

namespace pccl::transport::tcp {

class RecvPaths {
   public:
    RecvPaths(const CloseContext& close_context, std::string peer_name,
              std::chrono::milliseconds peer_timeout);

    /// Takes the sockets of the path that begins the link.
    void begin(std::vector<WatchedSocket> sockets);
    /// Takes the sockets of a path that joins: they count once the sender uses them. Any thread.
    void join(std::size_t path, std::vector<WatchedSocket> sockets);

    Result<Bytes> peek(ChannelId channel);
    void consume(ChannelId channel, std::size_t count);
    Result<std::size_t> receive(ChannelId channel, MutableBytes into);
    Status look();
    void abort(const Status& reason);

   private:
    using Reader = BufferedReader<PieceReader>;
    struct JoiningPath {
        std::size_t path = 0;
        std::vector<WatchedSocket> sockets;
        PathBegin begin{};
        std::size_t begin_bytes = 0;
    };
    void use(std::size_t path, std::vector<WatchedSocket>& sockets);
    /// Uses the joining paths that the sender uses.
    void admit();
    /// Returns true when the path has joined or failed.
    bool admit(JoiningPath& joining);
    Reader& reader(ChannelId channel) { return readers_[static_cast<std::size_t>(channel)]; }
    /// Returns why the peer is gone, once no earlier bytes of it can still arrive.
    Status settled(const Status& gone);
    Status cause_of(const Status& fault);

    const Rank peer_;
    const std::string peer_name_;
    const std::chrono::milliseconds peer_timeout_;
    std::atomic<bool> has_joining_{false};
    std::mutex mutex_;  // guards the next members
    std::vector<JoiningPath> joining_;
    std::vector<Reader> readers_;  // by channel
    PeerWatch watch_;
    StickyStatus status_;
};

class MultipathRecvLink final : public RecvLink {
   public:
    explicit MultipathRecvLink(std::shared_ptr<RecvPaths> paths) : paths_(std::move(paths)) {}
    ~MultipathRecvLink() override = default;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }
    Result<Bytes> peek(ChannelId channel) override { return paths_->peek(channel); }
    void consume(ChannelId channel, std::size_t count) override { paths_->consume(channel, count); }
    Result<std::size_t> receive(ChannelId channel, MutableBytes into) override {
        return paths_->receive(channel, into);
    }
    Status look() override { return paths_->look(); }
    void abort(const Status& reason) override { paths_->abort(reason); }

   private:
    const std::shared_ptr<RecvPaths> paths_;
};

}  // namespace pccl::transport::tcp
