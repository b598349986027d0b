// SPDX-License-Identifier: Apache-2.0

// The two ends of a stream that is a vector, for tests that write or read its bytes themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/link.h"

namespace pccl::fakes {

/// One direction, in memory, without an end.
struct MemoryStream {
    std::vector<std::byte> bytes;
    std::size_t consumed = 0;
};

class MemorySendLink final : public transport::SendLink {
   public:
    explicit MemorySendLink(std::shared_ptr<MemoryStream> stream) : stream_(std::move(stream)) {}
    [[nodiscard]] transport::TransportKind kind() const override {
        return transport::TransportKind::kTcp;
    }
    [[nodiscard]] std::size_t capacity(ChannelId) const override { return 1 << 30; }
    Result<std::size_t> send(ChannelId, transport::Bytes bytes, transport::Flush) override {
        stream_->bytes.insert(stream_->bytes.end(), bytes.begin(), bytes.end());
        return bytes.size();
    }
    Result<bool> flush(ChannelId) override { return true; }
    void abort(const Status&) override {}

   private:
    std::shared_ptr<MemoryStream> stream_;
};

class MemoryRecvLink final : public transport::RecvLink {
   public:
    explicit MemoryRecvLink(std::shared_ptr<MemoryStream> stream) : stream_(std::move(stream)) {}
    [[nodiscard]] transport::TransportKind kind() const override {
        return transport::TransportKind::kTcp;
    }
    Result<transport::Bytes> peek(ChannelId) override {
        return transport::Bytes(stream_->bytes).subspan(stream_->consumed);
    }
    void consume(ChannelId, std::size_t count) override { stream_->consumed += count; }
    Result<std::size_t> receive(ChannelId, transport::MutableBytes into) override {
        const auto here = transport::Bytes(stream_->bytes).subspan(stream_->consumed);
        const std::size_t count = std::min(here.size(), into.size());
        std::copy_n(here.begin(), count, into.begin());
        stream_->consumed += count;
        return count;
    }
    void abort(const Status&) override {}

   private:
    std::shared_ptr<MemoryStream> stream_;
};

}  // namespace pccl::fakes
