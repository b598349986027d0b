// The receiving end of a TCP link.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/link.h"
#include "csrc/transport/sticky_status.h"
#include "csrc/transport/tcp/block_reader.h"
#include "csrc/transport/tcp/watch.h"

namespace pccl::transport::tcp {

/// Reads one channel: into the reader's own memory for peek(), straight into the caller's for long
/// reads.
class StripedReader {
   public:
    explicit StripedReader(Stripes stripes) : blocks_(std::move(stripes)) {}

    /// Looks for more when there is nothing, or when the caller did nothing with what it was shown
    /// last.
    Result<Bytes> peek();
    void consume(std::size_t count);
    Result<std::size_t> receive(MutableBytes into);
    [[nodiscard]] const BlockReader& blocks() const { return blocks_; }

   private:
    [[nodiscard]] std::size_t held() const { return end_ - begin_; }
    std::size_t take_held(MutableBytes into);
    void fill(std::size_t wanted);
    std::size_t read(MutableBytes into);

    // A header and a short message come with one read; of a long one only so much is copied twice.
    static constexpr std::size_t kShortRead = 8 * kKiB;

    BlockReader blocks_;
    std::unique_ptr<std::byte[]> memory_;  // made when first needed; holds [begin_, end_)
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t window_ = kShortRead;  // bytes that a peek asks for: grows while they keep coming
    bool shown_ = false;
    Status fault_;  // of the sockets, to be told once held() is empty
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
    /// Why the peer is gone, as far as a channel shows that has nothing now.
    Status look_idle(const StripedReader& reader);
    /// `gone`, once what the peer sent before cannot be on its way any more, on other sockets.
    Status settled(const Status& gone);
    /// Why the peer is gone, once that is known.
    Status fail(const Status& fault);

    const Rank peer_;
    const std::string peer_name_;
    std::vector<StripedReader> readers_;
    PeerWatch watch_;
    TimePoint gone_{};
    StickyStatus status_;
};

}  // namespace pccl::transport::tcp
