// SPDX-License-Identifier: Apache-2.0

// Sending end of a TCP link.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/socket/interface_names.h"
#include "csrc/transport/link.h"
#include "csrc/transport/sticky_status.h"
#include "csrc/transport/tcp/block_writer.h"
#include "csrc/transport/tcp/link_parts.h"

namespace pccl::transport::tcp {

class TcpSendLink final : public SendLink {
   public:
    explicit TcpSendLink(LinkParts parts);
    ~TcpSendLink() override = default;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }
    /// Returns the bytes that the kernel's send buffers take even if the receiver never reads.
    [[nodiscard]] std::size_t capacity(ChannelId channel) const override;
    Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush) override;
    Result<std::size_t> send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                      Flush flush) override;
    Result<bool> flush(ChannelId channel) override;
    Status look() override { return watch_.look(); }
    [[nodiscard]] std::vector<sys::NetworkPath> paths() override;
    void abort(const Status& reason) override;

   private:
    /// Channel with the few bytes that wait to leave together with later ones.
    struct SendChannel {
        BlockWriter writer;
        std::vector<std::byte> held;
    };
    Result<std::size_t> push(SendChannel& channel_state, std::span<const Bytes> pieces);
    Status fail_if_left();
    /// Returns why the peer is gone, once the reason has arrived.
    Status fail(const Status& fault);

    const Rank peer_;
    const std::string peer_name_;
    std::vector<SendChannel> channels_;
    PeerWatch watch_;
    sys::InterfaceNames interfaces_;
    StickyStatus status_;
};

}  // namespace pccl::transport::tcp
