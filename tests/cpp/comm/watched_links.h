// SPDX-License-Identifier: Apache-2.0

// Links that note, in order, what was done at them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/transport/link.h"

namespace pccl::comm::testing {

/// What was done at the links of a rank, in order. Thread-safe: threads share the links of strands.
class LinkLog {
   public:
    void add(char what) {
        const std::lock_guard lock(mutex_);
        text_ += what;
    }
    [[nodiscard]] std::string text() const {
        const std::lock_guard lock(mutex_);
        return text_;
    }

   private:
    mutable std::mutex mutex_;
    std::string text_;
};

/// Adds an 's' to `log` for each call that sent something.
class WatchedSendLink final : public transport::SendLink {
   public:
    WatchedSendLink(std::unique_ptr<transport::SendLink> link, LinkLog& log)
        : link_(std::move(link)), log_(log) {}

    [[nodiscard]] transport::TransportKind kind() const override { return link_->kind(); }
    [[nodiscard]] std::size_t capacity(ChannelId channel) const override {
        return link_->capacity(channel);
    }
    Result<std::size_t> send(ChannelId channel, transport::Bytes bytes,
                             transport::Flush flush) override {
        auto sent = link_->send(channel, bytes, flush);
        if (sent.is_ok() && *sent > 0) log_.add('s');
        return sent;
    }
    Result<bool> flush(ChannelId channel) override { return link_->flush(channel); }
    void abort(const Status& reason) override { link_->abort(reason); }

   private:
    std::unique_ptr<transport::SendLink> link_;
    LinkLog& log_;
};

/// Adds an 'r' for each call that received something, a '-' for each that found nothing.
class WatchedRecvLink final : public transport::RecvLink {
   public:
    WatchedRecvLink(std::unique_ptr<transport::RecvLink> link, LinkLog& log)
        : link_(std::move(link)), log_(log) {}

    [[nodiscard]] transport::TransportKind kind() const override { return link_->kind(); }
    Result<transport::Bytes> peek(ChannelId channel) override {
        auto here = link_->peek(channel);
        if (here.is_ok()) log_.add(here->empty() ? '-' : 'r');
        return here;
    }
    void consume(ChannelId channel, std::size_t count) override { link_->consume(channel, count); }
    Result<std::size_t> receive(ChannelId channel, transport::MutableBytes into) override {
        auto received = link_->receive(channel, into);
        if (received.is_ok()) log_.add(*received > 0 ? 'r' : '-');
        return received;
    }
    void abort(const Status& reason) override { link_->abort(reason); }

   private:
    std::unique_ptr<transport::RecvLink> link_;
    LinkLog& log_;
};

}  // namespace pccl::comm::testing
