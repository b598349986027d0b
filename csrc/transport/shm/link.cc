// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/link.h"

#include <algorithm>

#include "csrc/base/ids.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::shm {

namespace {

Status ring_error(Rank peer) {
    return Status::peer_lost(peer,
                             concat(peer_name(peer), " wrote impossible counters to its ring"));
}

}  // namespace

Result<std::size_t> ShmSendLink::room(ChannelId channel, SendCursor& cursor, std::size_t wanted) {
    std::size_t used = cursor.written - cursor.freed;
    if (rings_->bytes() - used < wanted) {
        cursor.freed = rings_->counters(channel).head.load(std::memory_order_acquire);
        used = cursor.written - cursor.freed;
        if (used > rings_->bytes()) return status_.set(ring_error(wire_->peer()));
    }
    return rings_->bytes() - used;
}

void ShmSendLink::publish(ChannelId channel, SendCursor& cursor) {
    if (cursor.published == cursor.written) return;
    cursor.published = cursor.written;
    rings_->counters(channel).tail.store(cursor.written, std::memory_order_release);
    wire_->ring();
}

Result<std::size_t> ShmSendLink::send(ChannelId channel, Bytes bytes, Flush flush) {
    if (status_.is_set()) return status_.get();
    SendCursor& cursor = cursors_[static_cast<std::size_t>(channel)];
    PCCL_ASSIGN_OR_RETURN(const std::size_t free, room(channel, cursor, bytes.size()));
    const std::size_t taken = std::min(free, bytes.size());
    if (taken > 0) {
        std::byte* to = rings_->data(channel) + cursor.written % rings_->bytes();
        copy_.copy(to, bytes.data(), taken);
        cursor.written += taken;
        wire_->reset_idle();
    }
    if (flush == Flush::kNow || taken < bytes.size()) publish(channel, cursor);
    if (taken == 0 && !bytes.empty()) {
        if (const Status status = wire_->look_idle(); !status.is_ok()) return status_.set(status);
    }
    return taken;
}

Result<bool> ShmSendLink::flush(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    publish(channel, cursors_[static_cast<std::size_t>(channel)]);
    return true;
}

void ShmSendLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    wire_->close(reason);
}

Result<std::size_t> ShmRecvLink::available(ChannelId channel, ReceiveCursor& cursor) {
    if (status_.is_set()) return status_.get();
    if (cursor.filled == cursor.consumed || cursor.shown) {
        const auto& tail = rings_->counters(channel).tail;
        cursor.filled = tail.load(std::memory_order_acquire);
        if (cursor.filled == cursor.consumed) {
            if (lost_.is_ok()) lost_ = wire_->look_idle();
            if (lost_.is_ok()) return std::size_t{0};
            // Bytes that it wrote before it left still count.
            cursor.filled = tail.load(std::memory_order_acquire);
            if (cursor.filled == cursor.consumed) return lost_;
        }
        wire_->reset_idle();
    }
    const std::size_t bytes = cursor.filled - cursor.consumed;
    if (bytes > rings_->bytes()) return status_.set(ring_error(wire_->peer()));
    return bytes;
}

Result<Bytes> ShmRecvLink::peek(ChannelId channel) {
    ReceiveCursor& cursor = cursors_[static_cast<std::size_t>(channel)];
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, available(channel, cursor));
    cursor.shown = true;
    return Bytes(rings_->data(channel) + cursor.consumed % rings_->bytes(), bytes);
}

void ShmRecvLink::consume(ChannelId channel, std::size_t count) {
    ReceiveCursor& cursor = cursors_[static_cast<std::size_t>(channel)];
    cursor.consumed += count;
    cursor.shown = false;
    rings_->counters(channel).head.store(cursor.consumed, std::memory_order_release);
    wire_->ring();
}

Result<std::size_t> ShmRecvLink::receive(ChannelId channel, MutableBytes into) {
    return receive_peeked(*this, channel, into);
}

void ShmRecvLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    wire_->close(reason);
}

}  // namespace pccl::transport::shm
