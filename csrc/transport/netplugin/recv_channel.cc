// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/recv_channel.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/text/text.h"
#include "csrc/transport/netplugin/wire.h"

namespace pccl::transport::netplugin {
namespace {

/// Value that test() leaves where a plug-in returns no sizes.
constexpr int kNoSize = -1;

}  // namespace

RecvChannel::RecvChannel(Comm comm, std::size_t longest)
    : comm_(std::move(comm)), longest_(longest) {}

std::size_t RecvChannel::bytes_for(std::size_t longest) {
    return kSlots * (longest + kHeaderBytes);
}

std::byte* RecvChannel::slot(std::uint64_t message) const {
    return comm_.memory().data() + (message % kSlots) * (longest_ + kHeaderBytes);
}

Result<bool> RecvChannel::advance() {
    const std::uint64_t before = tested_;
    while (!has_ended_ && tested_ < posted_) {
        int bytes = kNoSize;
        PCCL_ASSIGN_OR_RETURN(const bool is_done, comm_.test(requests_[tested_ % kSlots], bytes));
        if (!is_done) break;
        PCCL_TRY(take(tested_++, bytes));
    }
    while (!has_ended_ && posted_ - freed_.load(std::memory_order_acquire) < kSlots) {
        PCCL_ASSIGN_OR_RETURN(void* const request,
                              comm_.irecv({slot(posted_), longest_ + kHeaderBytes}));
        if (request == nullptr) break;
        requests_[posted_++ % kSlots] = request;
    }
    return tested_ > before;
}

Status RecvChannel::take(std::uint64_t message, int bytes) {
    MessageHeader header;
    std::memcpy(&header, slot(message), sizeof header);
    const Plugin& plugin = *comm_.caller().plugin;
    if (header.magic != MessageHeader::kMagic || header.sequence != message ||
        header.bytes > longest_)
        return Status::unavailable(
            plugin.line("test ends a receive, but its bytes are not those of the next message"));
    if (bytes != kNoSize && static_cast<std::size_t>(bytes) != kHeaderBytes + header.bytes)
        return Status::unavailable(plugin.line(concat(
            "test returns ", bytes, " bytes for a message of ", kHeaderBytes + header.bytes)));
    if (header.bytes == 0) {
        has_ended_.store(true, std::memory_order_release);
        return Status::ok();
    }
    lengths_[message % kSlots] = header.bytes;
    arrived_.store(message + 1, std::memory_order_release);
    return Status::ok();
}

Bytes RecvChannel::front() const {
    return Bytes(slot(taken_) + kHeaderBytes, lengths_[taken_ % kSlots]).subspan(offset_);
}

void RecvChannel::consume_front(std::size_t count) {
    offset_ += count;
    if (offset_ < lengths_[taken_ % kSlots]) return;
    offset_ = 0;
    freed_.store(++taken_, std::memory_order_release);
}

void RecvChannel::join() {
    joined_.erase(joined_.begin(), joined_.begin() + static_cast<std::ptrdiff_t>(joined_begin_));
    joined_begin_ = 0;
    while (joined_.size() < kJoined && taken_ < arrived_.load(std::memory_order_acquire)) {
        const Bytes more = front().first(std::min(front().size(), kJoined - joined_.size()));
        joined_.insert(joined_.end(), more.begin(), more.end());
        consume_front(more.size());
    }
}

Bytes RecvChannel::peek() {
    if (is_empty()) return {};
    const bool is_joined = joined_begin_ < joined_.size();
    const std::size_t here = is_joined ? joined_.size() - joined_begin_ : front().size();
    const std::uint64_t next = taken_ + (is_joined ? 0 : 1);
    const bool has_more = next < arrived_.load(std::memory_order_acquire);
    if (is_shown_ && here < kJoined && has_more) join();
    is_shown_ = true;
    if (joined_begin_ < joined_.size()) return Bytes(joined_).subspan(joined_begin_);
    return front();
}

bool RecvChannel::consume(std::size_t count) {
    if (count == 0) return false;
    is_shown_ = false;
    const std::uint64_t before = taken_;
    const std::size_t from_joined = std::min(count, joined_.size() - joined_begin_);
    joined_begin_ += from_joined;
    if (count > from_joined) consume_front(count - from_joined);
    return taken_ > before;
}

}  // namespace pccl::transport::netplugin
