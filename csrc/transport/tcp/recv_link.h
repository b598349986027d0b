// SPDX-License-Identifier: Apache-2.0

// Receiving end of a TCP link.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/link.h"
#include "csrc/transport/sticky_status.h"
#include "csrc/transport/tcp/block_reader.h"
#include "csrc/transport/tcp/link_parts.h"

namespace pccl::transport::tcp {

/// Reader of one channel: into its own memory for peek(), straight into the caller's memory for
/// long reads.
class StripedReader {
   public:
    explicit StripedReader(Stripes stripes) : blocks_(std::move(stripes)) {}

    /// Reads more when there is nothing, or when the caller used none of the bytes that peek() last
    /// returned.
    Result<Bytes> peek();
    void consume(std::size_t count);
    Result<std::size_t> receive(MutableBytes into);
    [[nodiscard]] const BlockReader& blocks() const { return blocks_; }

   private:
    [[nodiscard]] std::size_t held() const { return end_ - begin_; }
    std::size_t take_held(MutableBytes into);
    void fill(std::size_t wanted);
    std::size_t read(MutableBytes into);

    // A header and a short message come with one read; only this much of a long message is copied
    // twice.
    static constexpr std::size_t kShortRead = 8 * kKiB;

    BlockReader blocks_;
    std::unique_ptr<std::byte[]> memory_;  // allocated on first use; contains [begin_, end_)
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t window_ = kShortRead;  // bytes that a peek requests: grows while they keep coming
    bool shown_ = false;
    Status fault_;  // of the sockets, returned once held() is 0
};

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
    TimePoint gone_{};
    StickyStatus status_;
};

}  // namespace pccl::transport::tcp
