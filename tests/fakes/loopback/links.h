// SPDX-License-Identifier: Apache-2.0

// Both ends of a loopback link.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/link.h"
#include "csrc/transport/sticky_status.h"
#include "tests/fakes/loopback/process.h"

namespace pccl::transport::loopback {

class LoopbackSendLink final : public SendLink {
   public:
    LoopbackSendLink(std::shared_ptr<Pipe> pipe, std::shared_ptr<Process> process);
    ~LoopbackSendLink() override { pipe_->leave(Pipe::End::kSender); }
    LoopbackSendLink(const LoopbackSendLink&) = delete;
    LoopbackSendLink& operator=(const LoopbackSendLink&) = delete;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kLoopback; }
    [[nodiscard]] std::size_t capacity(ChannelId) const override { return pipe_->capacity(); }
    Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush) override;
    Result<bool> flush(ChannelId channel) override;
    void abort(const Status& reason) override;
    [[nodiscard]] const std::shared_ptr<Pipe>& pipe() const { return pipe_; }

   private:
    Status check();

    std::shared_ptr<Pipe> pipe_;
    std::shared_ptr<Process> process_;
    StickyStatus status_;
};

class LoopbackRecvLink final : public RecvLink {
   public:
    LoopbackRecvLink(std::shared_ptr<Pipe> pipe, std::shared_ptr<Process> process);
    ~LoopbackRecvLink() override { pipe_->leave(Pipe::End::kReceiver); }
    LoopbackRecvLink(const LoopbackRecvLink&) = delete;
    LoopbackRecvLink& operator=(const LoopbackRecvLink&) = delete;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kLoopback; }
    Result<Bytes> peek(ChannelId channel) override;
    void consume(ChannelId channel, std::size_t count) override;
    Result<std::size_t> receive(ChannelId channel, MutableBytes into) override;
    void abort(const Status& reason) override;

   private:
    /// Bytes taken from the pipe; those from `begin` on are not consumed.
    struct Arrived {
        std::vector<std::byte> bytes;
        std::size_t begin = 0;
        bool shown = false;
    };
    Arrived& arrived(ChannelId channel) { return arrived_[static_cast<std::size_t>(channel)]; }
    Status check();

    std::shared_ptr<Pipe> pipe_;
    std::shared_ptr<Process> process_;
    std::array<Arrived, kChannels> arrived_;
    StickyStatus status_;
};

}  // namespace pccl::transport::loopback
