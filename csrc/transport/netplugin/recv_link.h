// SPDX-License-Identifier: Apache-2.0

// Receiving end of a link over a plug-in.
#pragma once

#include <memory>
#include <vector>

#include "csrc/transport/link.h"
#include "csrc/transport/netplugin/link_core.h"
#include "csrc/transport/netplugin/recv_channel.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::netplugin {

class RecvCore final : public LinkCore {
   public:
    RecvCore(LinkParts parts, std::vector<std::unique_ptr<RecvChannel>> channels);

    [[nodiscard]] RecvChannel& channel(ChannelId channel) {
        return *streams_[static_cast<std::size_t>(channel)].channel;
    }
    /// Takes arrived bytes. Returns an error once no byte of the channel can come any more.
    Status refresh(ChannelId channel);
    /// Posts receives into slots that are free, if nothing else uses the link.
    void repost();
    /// Returns why the peer is gone, once the bytes of all channels have been read or cannot come.
    Status look_settled();
    /// Ends the link.
    void finish();

   protected:
    Result<Activity> advance() override;

   private:
    /// Stream of one channel. Its errors are its own: others may have bytes that have arrived.
    struct Stream {
        std::unique_ptr<RecvChannel> channel;
        Status fault{};  // of a call of the plug-in
        Status lost{};   // why no byte can come any more
    };
    Status find_loss(Stream& stream);
    Activity advance_all();
    Status settled(const Status& gone, bool has_all);
    [[nodiscard]] bool has_ended() const;

    std::vector<Stream> streams_;
    std::uint64_t arrivals_ = 0;       // of messages, that advance() has taken
    std::uint64_t seen_arrivals_ = 0;  // when the peer was gone
    TimePoint gone_{};
    int idle_polls_ = 0;  // since the last arrival
};

class NetRecvLink final : public RecvLink {
   public:
    NetRecvLink(std::shared_ptr<RecvCore> core, std::shared_ptr<Progress> progress);
    ~NetRecvLink() override;
    NetRecvLink(const NetRecvLink&) = delete;
    NetRecvLink& operator=(const NetRecvLink&) = delete;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kNetPlugin; }
    Result<Bytes> peek(ChannelId channel) override;
    void consume(ChannelId channel, std::size_t count) override;
    Result<std::size_t> receive(ChannelId channel, MutableBytes into) override;
    Status look() override { return core_->look_settled(); }
    void abort(const Status& reason) override { core_->abort(reason); }

   private:
    const std::shared_ptr<RecvCore> core_;
    const std::shared_ptr<Progress> progress_;
};

}  // namespace pccl::transport::netplugin
