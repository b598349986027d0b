// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/send_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

SendChannel::SendChannel(std::vector<Comm> comms, std::size_t longest, int max_requests)
    : longest_(longest),
      most_posted_(static_cast<std::size_t>(std::min(max_requests, kMostRequests))) {
    lanes_.reserve(comms.size());
    for (Comm& comm : comms) lanes_.push_back({.comm = std::move(comm)});
}

std::size_t SendChannel::capacity() const {
    // Each message takes a header and less than another for its alignment; the wrap takes the rest.
    const std::size_t messages = lanes_.size() * most_posted_ + ring_bytes() / longest_ + 4;
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
    return posted_.empty() && is_flushed_now() && ends_left_ == 0;
}

void SendChannel::finish() {
    const std::lock_guard lock(mutex_);
    if (open_) close_message();
    ends_left_ = lanes_.size();
}

void SendChannel::queue_ends() {
    // The header of an empty message needs room that completions may have to make first.
    while (ends_left_ > 0 && open_message()) {
        open_->lane = --ends_left_;
        close_message();
    }
}

std::size_t SendChannel::in_flight() const {
    std::size_t count = 0;
    for (const Lane& lane : lanes_) count += lane.posted;
    return count;
}

std::optional<void*> SendChannel::oldest_request(std::size_t lane) const {
    const std::lock_guard lock(mutex_);
    for (const Message& message : posted_)
        if (message.lane == lane && !message.is_done) return message.request;
    return std::nullopt;
}

void SendChannel::mark_done(std::size_t lane) {
    const std::lock_guard lock(mutex_);
    const auto done = std::ranges::find_if(
        posted_, [&](const Message& each) { return each.lane == lane && !each.is_done; });
    done->is_done = true;
    --lanes_[lane].posted;
    lanes_[lane].bytes -= done->bytes;
    while (!posted_.empty() && posted_.front().is_done) {
        head_ = posted_.front().begin + kHeaderBytes + posted_.front().bytes;
        posted_.pop_front();
    }
}

Status SendChannel::take_completions(bool& has_completed) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        while (const auto request = oldest_request(lane)) {
            int bytes = 0;
            PCCL_ASSIGN_OR_RETURN(const bool is_done, lanes_[lane].comm.test(*request, bytes));
            if (!is_done) break;
            mark_done(lane);
            has_completed = true;
        }
    }
    return Status::ok();
}

bool SendChannel::may_close() const {
    return open_ && flushes_ && queue_.empty() && in_flight() < kMostShort * lanes_.size();
}

std::optional<SendChannel::Message> SendChannel::next_to_post() {
    const std::lock_guard lock(mutex_);
    queue_ends();
    if (may_close()) close_message();
    if (!open_ && queue_.empty()) flushes_ = false;
    return queue_.empty() ? std::nullopt : std::optional(queue_.front());
}

std::vector<std::size_t> SendChannel::lanes_for(const Message& message) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t> fitting;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
        if (lanes_[lane].posted < most_posted_ && message.lane.value_or(lane) == lane)
            fitting.push_back(lane);
    std::ranges::stable_sort(fitting, {}, [this](std::size_t lane) { return lanes_[lane].bytes; });
    return fitting;
}

Result<bool> SendChannel::post(const Message& message, std::size_t lane) {
    PCCL_ASSIGN_OR_RETURN(
        void* const request,
        lanes_[lane].comm.isend({at(message.begin), kHeaderBytes + message.bytes}));
    if (request == nullptr) return false;
    const std::lock_guard lock(mutex_);
    Message& posted = posted_.emplace_back(queue_.front());
    posted.request = request;
    posted.lane = lane;
    ++lanes_[lane].posted;
    lanes_[lane].bytes += posted.bytes;
    queue_.pop_front();
    return true;
}

Status SendChannel::post_queued() {
    while (const auto next = next_to_post()) {
        bool is_posted = false;
        for (const std::size_t lane : lanes_for(*next)) {
            PCCL_ASSIGN_OR_RETURN(is_posted, post(*next, lane));
            if (is_posted) break;
        }
        if (!is_posted) break;
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
