// SPDX-License-Identifier: Apache-2.0

// Receiving end of a TCP link.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/link.h"
#include "csrc/transport/sticky_status.h"
#include "csrc/transport/tcp/block_reader.h"
#include "csrc/transport/tcp/buffered_reader.h"
#include "csrc/transport/tcp/link_parts.h"

namespace pccl::transport::tcp {

using StripedReader = BufferedReader<BlockReader>;

class TcpRecvLink final : public RecvLink {
   public:
    explicit TcpRecvLink(LinkParts parts);
    ~TcpRecvLink() override = default;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }
    Result<Bytes> peek(ChannelId channel) override;
    void consume(ChannelId channel, std::size_t count) override;
    Result<std::size_t> receive(ChannelId channel, MutableBytes into) override;
    Status look() override { return settled(watch_.look()); }
    void abort(const Status& reason) override;

   private:
    /// Returns why the peer is gone, as far as an idle channel shows it.
    Status look_idle(const StripedReader& reader);
    /// Returns `gone`, once no earlier bytes of the peer can still arrive on other sockets.
    Status settled(const Status& gone);
    /// Returns why the peer is gone, once the reason has arrived.
    Status cause_of(const Status& fault);

    const Rank peer_;
    const std::string peer_name_;
    std::vector<StripedReader> readers_;
    PeerWatch watch_;
    StickyStatus status_;
};

}  // namespace pccl::transport::tcp
