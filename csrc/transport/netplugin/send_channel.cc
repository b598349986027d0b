// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/send_channel.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/ids.h"
#include "csrc/transport/netplugin/wire.h"

namespace pccl::transport::netplugin {
namespace {

/// Messages that leave although they are short.
constexpr std::size_t kMostShort = 2;
constexpr int kMostRequests = 8;

std::uint64_t aligned(std::uint64_t position) {
    return (position + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
}

}  // namespace

SendChannel::SendChannel(Comm comm, std::size_t longest, int max_requests)
    : comm_(std::move(comm)),
      longest_(longest),
      most_posted_(static_cast<std::size_t>(std::min(max_requests, kMostRequests))) {}

std::size_t SendChannel::capacity() const {
    // Each message takes a header and less than another for its alignment; the wrap takes the rest.
    const std::size_t messages = most_posted_ + ring_bytes() / longest_ + 4;
    return ring_bytes() - 2 * kHeaderBytes * messages - kCacheLine;
}

std::size_t SendChannel::make_room() {
    const std::size_t used = tail_ - head_;
    std::size_t contiguous = ring_bytes() - tail_ % ring_bytes();
    std::size_t room = ring_bytes() - used;
    if (!open_ && contiguous <= kHeaderBytes && room > contiguous) {
        tail_ += contiguous;
        room -= contiguous;
        contiguous = ring_bytes();
    }
    return std::min(room, contiguous);
}

bool SendChannel::open_message() {
    tail_ = std::min(aligned(tail_), head_ + ring_bytes());
    if (make_room() <= kHeaderBytes) return false;
    open_ = Message{.begin = tail_};
    tail_ += kHeaderBytes;
    return true;
}

void SendChannel::close_message() {
    const MessageHeader header{.bytes = static_cast<std::uint32_t>(open_->bytes),
                               .sequence = sequence_++};
    std::memcpy(at(open_->begin), &header, sizeof header);
    queue_.push_back(*open_);
    open_.reset();
}

std::size_t SendChannel::put(std::span<const Bytes> pieces) {
    const std::lock_guard lock(mutex_);
    std::size_t taken = 0;
    for (Bytes piece : pieces) {
        while (!piece.empty()) {
            if (!open_ && !open_message()) return taken;
            const std::size_t room = std::min(make_room(), longest_ - open_->bytes);
            const std::size_t count = std::min(room, piece.size());
            if (count > 0) std::memcpy(at(tail_), piece.data(), count);
            tail_ += count;
            open_->bytes += count;
            taken += count;
            piece = piece.subspan(count);
            const bool is_at_end = open_->bytes == longest_ || tail_ % ring_bytes() == 0;
            if (is_at_end)
                close_message();
            else if (count == 0)
                return taken;
        }
    }
    return taken;
}

void SendChannel::request_flush() {
    const std::lock_guard lock(mutex_);
    flushes_ = true;
}

bool SendChannel::is_flushed() const {
    const std::lock_guard lock(mutex_);
    return is_flushed_now();
}

bool SendChannel::is_idle() const {
    const std::lock_guard lock(mutex_);
    return posted_.empty() && is_flushed_now() && !is_finishing_;
}

void SendChannel::finish() {
    const std::lock_guard lock(mutex_);
    if (open_) close_message();
    is_finishing_ = true;
}

void SendChannel::queue_end() {
    // The header of the empty message needs room that completions may have to make first.
    if (!is_finishing_ || !open_message()) return;
    close_message();
    is_finishing_ = false;
}

std::optional<SendChannel::Message> SendChannel::oldest_posted() const {
    const std::lock_guard lock(mutex_);
    return posted_.empty() ? std::nullopt : std::optional(posted_.front());
}

void SendChannel::retire_oldest() {
    const std::lock_guard lock(mutex_);
    head_ = posted_.front().begin + kHeaderBytes + posted_.front().bytes;
    posted_.pop_front();
}

Status SendChannel::take_completions(bool& has_completed) {
    while (const auto first = oldest_posted()) {
        int bytes = 0;
        PCCL_ASSIGN_OR_RETURN(const bool is_done, comm_.test(first->request, bytes));
        if (!is_done) break;
        retire_oldest();
        has_completed = true;
    }
    return Status::ok();
}

bool SendChannel::may_close() const {
    return open_ && flushes_ && queue_.empty() && posted_.size() < kMostShort;
}

std::optional<SendChannel::Message> SendChannel::next_to_post() {
    const std::lock_guard lock(mutex_);
    queue_end();
    if (may_close()) close_message();
    if (!open_ && queue_.empty()) flushes_ = false;
    if (queue_.empty() || posted_.size() >= most_posted_) return std::nullopt;
    return queue_.front();
}

void SendChannel::mark_posted(void* request) {
    const std::lock_guard lock(mutex_);
    queue_.front().request = request;
    posted_.push_back(queue_.front());
    queue_.pop_front();
}

Status SendChannel::post_queued() {
    while (const auto next = next_to_post()) {
        PCCL_ASSIGN_OR_RETURN(void* const request,
                              comm_.isend({at(next->begin), kHeaderBytes + next->bytes}));
        if (request == nullptr) break;
        mark_posted(request);
    }
    return Status::ok();
}

Result<bool> SendChannel::advance() {
    bool has_completed = false;
    PCCL_TRY(take_completions(has_completed));
    PCCL_TRY(post_queued());
    return has_completed;
}

}  // namespace pccl::transport::netplugin
