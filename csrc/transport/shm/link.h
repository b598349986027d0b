// SPDX-License-Identifier: Apache-2.0

// Both ends of a shared-memory link.
#pragma once

#include <array>
#include <memory>

#include "csrc/base/ids.h"
#include "csrc/sys/cpu/shared_copy.h"
#include "csrc/transport/link.h"
#include "csrc/transport/shm/ring.h"
#include "csrc/transport/shm/wire.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::transport::shm {

class ShmSendLink final : public SendLink {
   public:
    ShmSendLink(std::unique_ptr<RingFile> rings, std::unique_ptr<PeerWire> wire)
        : rings_(std::move(rings)), wire_(std::move(wire)) {}

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kShm; }
    [[nodiscard]] std::size_t capacity(ChannelId) const override { return rings_->bytes(); }
    Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush) override;
    Result<bool> flush(ChannelId channel) override;
    Status look() override { return wire_->look(); }
    void abort(const Status& reason) override;
    /// Returns the wire, whose address is stable while the link lives.
    [[nodiscard]] PeerWire& wire() { return *wire_; }

   private:
    struct SendCursor {
        std::uint64_t written = 0;    // bytes copied into the ring
        std::uint64_t published = 0;  // of these, visible to the peer
        std::uint64_t freed = 0;      // the peer's head when last read
    };
    Result<std::size_t> room(ChannelId channel, SendCursor& cursor, std::size_t wanted);
    void publish(ChannelId channel, SendCursor& cursor);

    std::unique_ptr<RingFile> rings_;
    std::unique_ptr<PeerWire> wire_;
    std::array<SendCursor, kChannels> cursors_{};
    SharedCopy copy_;
    StickyStatus status_;
};

class ShmRecvLink final : public RecvLink {
   public:
    ShmRecvLink(std::unique_ptr<RingFile> rings, std::unique_ptr<PeerWire> wire)
        : rings_(std::move(rings)), wire_(std::move(wire)) {}

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kShm; }
    Result<Bytes> peek(ChannelId channel) override;
    void consume(ChannelId channel, std::size_t count) override;
    Result<std::size_t> receive(ChannelId channel, MutableBytes into) override;
    Status look() override { return wire_->look(); }
    void abort(const Status& reason) override;

   private:
    struct ReceiveCursor {
        std::uint64_t consumed = 0;
        std::uint64_t filled = 0;  // the peer's tail when last read
        bool shown = false;        // set by a peek() after which no byte was consumed
    };
    Result<std::size_t> available(ChannelId channel, ReceiveCursor& cursor);

    std::unique_ptr<RingFile> rings_;
    std::unique_ptr<PeerWire> wire_;
    std::array<ReceiveCursor, kChannels> cursors_{};
    Status lost_;  // returned on each channel after its bytes
    StickyStatus status_;
};

}  // namespace pccl::transport::shm
