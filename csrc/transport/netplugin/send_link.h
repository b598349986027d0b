// SPDX-License-Identifier: Apache-2.0

// Sending end of a link over a plug-in: a communicator for each channel.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "csrc/transport/link.h"
#include "csrc/transport/netplugin/link_core.h"
#include "csrc/transport/netplugin/send_channel.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::netplugin {

/// Part of a link that outlives it until its last bytes have left.
class SendCore final : public LinkCore {
   public:
    SendCore(LinkParts parts, std::vector<std::unique_ptr<SendChannel>> channels)
        : LinkCore(std::move(parts)), channels_(std::move(channels)) {}

    [[nodiscard]] SendChannel& channel(ChannelId channel) {
        return *channels_[static_cast<std::size_t>(channel)];
    }
    Result<std::size_t> send(ChannelId channel, std::span<const Bytes> pieces, Flush flush);
    Result<bool> flush(ChannelId channel);
    /// Returns why the peer is gone, or a call of the plug-in has failed.
    Status look_for_fault();
    /// Lets what was sent leave, while progress is made, for as long as a peer may be silent.
    void finish(Deadline deadline);
    [[nodiscard]] bool is_awaited() const override { return is_finishing_; }

   protected:
    Result<Activity> advance() override;

   private:
    /// Takes completions of a channel, and posts; returns whether there were any. Does nothing
    /// where the polling thread does so.
    Result<bool> advance_one(SendChannel& stream);
    /// Returns why nothing could be sent.
    Status look_idle();

    std::vector<std::unique_ptr<SendChannel>> channels_;
    std::atomic<bool> is_finishing_{false};
    Deadline deadline_ = Deadline::never();
};

class NetSendLink final : public SendLink {
   public:
    /// `linger`: how long the last bytes may take to leave.
    NetSendLink(std::shared_ptr<SendCore> core, std::shared_ptr<Progress> progress,
                Duration linger);
    ~NetSendLink() override;
    NetSendLink(const NetSendLink&) = delete;
    NetSendLink& operator=(const NetSendLink&) = delete;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kNetPlugin; }
    [[nodiscard]] std::size_t capacity(ChannelId channel) const override {
        return core_->channel(channel).capacity();
    }
    Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush) override {
        return core_->send(channel, {&bytes, 1}, flush);
    }
    Result<std::size_t> send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                      Flush flush) override {
        return core_->send(channel, pieces, flush);
    }
    Result<bool> flush(ChannelId channel) override { return core_->flush(channel); }
    Status look() override { return core_->look_for_fault(); }
    void abort(const Status& reason) override { core_->abort(reason); }

   private:
    const std::shared_ptr<SendCore> core_;
    const std::shared_ptr<Progress> progress_;
    const Duration linger_;
};

}  // namespace pccl::transport::netplugin
