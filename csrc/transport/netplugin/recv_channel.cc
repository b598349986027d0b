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

RecvChannel::RecvChannel(std::vector<Comm> comms, std::size_t longest) : longest_(longest) {
    for (Comm& comm : comms) lanes_.emplace_back(std::move(comm));
}

std::size_t RecvChannel::bytes_for(std::size_t longest) {
    return kSlots * (longest + kHeaderBytes);
}

std::byte* RecvChannel::slot(const Lane& lane, std::uint64_t message) const {
    return lane.comm.memory().data() + (message % kSlots) * (longest_ + kHeaderBytes);
}

Result<bool> RecvChannel::advance() {
    bool has_any = false;
    for (Lane& lane : lanes_) {
        PCCL_ASSIGN_OR_RETURN(const bool has_arrived, advance(lane));
        has_any = has_any || has_arrived;
    }
    return has_any;
}

Result<bool> RecvChannel::advance(Lane& lane) {
    const std::uint64_t before = lane.tested;
    while (!lane.has_ended && lane.tested < lane.posted) {
        int bytes = kNoSize;
        PCCL_ASSIGN_OR_RETURN(const bool is_done,
                              lane.comm.test(lane.requests[lane.tested % kSlots], bytes));
        if (!is_done) break;
        PCCL_TRY(take(lane, lane.tested++, bytes));
    }
    while (!lane.has_ended && lane.posted - lane.freed.load(std::memory_order_acquire) < kSlots) {
        PCCL_ASSIGN_OR_RETURN(void* const request,
                              lane.comm.irecv({slot(lane, lane.posted), longest_ + kHeaderBytes}));
        if (request == nullptr) break;
        lane.requests[lane.posted++ % kSlots] = request;
    }
    return lane.tested > before;
}

Status RecvChannel::take(Lane& lane, std::uint64_t message, int bytes) {
    MessageHeader header;
    std::memcpy(&header, slot(lane, message), sizeof header);
    const Plugin& plugin = *lane.comm.caller().plugin;
    const bool is_next = header.sequence == lane.least;
    const bool is_in_order = lanes_.size() == 1 ? is_next : header.sequence >= lane.least;
    if (header.magic != MessageHeader::kMagic || !is_in_order || header.bytes > longest_)
        return Status::unavailable(
            plugin.line("test ends a receive, but its bytes are not those of the next message"));
    if (bytes != kNoSize && static_cast<std::size_t>(bytes) != kHeaderBytes + header.bytes)
        return Status::unavailable(plugin.line(concat(
            "test returns ", bytes, " bytes for a message of ", kHeaderBytes + header.bytes)));
    lane.least = header.sequence + 1;
    if (header.bytes == 0) {
        lane.has_ended = true;
        ended_.fetch_add(1, std::memory_order_release);
        return Status::ok();
    }
    lane.lengths[message % kSlots] = header.bytes;
    lane.sequences[message % kSlots] = header.sequence;
    lane.arrived.store(message + 1, std::memory_order_release);
    return Status::ok();
}

const RecvChannel::Lane* RecvChannel::lane_of(std::uint64_t sequence) const {
    for (const Lane& lane : lanes_) {
        const std::uint64_t arrived = lane.arrived.load(std::memory_order_acquire);
        for (std::uint64_t i = lane.taken; i < arrived; ++i)
            if (lane.sequences[i % kSlots] == sequence) return &lane;
    }
    return nullptr;
}

Bytes RecvChannel::front() const {
    const Lane& lane = *lane_of(next_);
    return Bytes(slot(lane, lane.taken) + kHeaderBytes, lane.lengths[lane.taken % kSlots])
        .subspan(offset_);
}

void RecvChannel::consume_front(std::size_t count) {
    auto& lane = const_cast<Lane&>(*lane_of(next_));
    offset_ += count;
    if (offset_ < lane.lengths[lane.taken % kSlots]) return;
    offset_ = 0;
    ++next_;
    lane.freed.store(++lane.taken, std::memory_order_release);
}

void RecvChannel::join() {
    joined_.erase(joined_.begin(), joined_.begin() + static_cast<std::ptrdiff_t>(joined_begin_));
    joined_begin_ = 0;
    while (joined_.size() < kJoined && lane_of(next_) != nullptr) {
        const Bytes more = front().first(std::min(front().size(), kJoined - joined_.size()));
        joined_.insert(joined_.end(), more.begin(), more.end());
        consume_front(more.size());
    }
}

Bytes RecvChannel::peek() {
    if (is_empty()) return {};
    const bool is_joined = joined_begin_ < joined_.size();
    const std::size_t here = is_joined ? joined_.size() - joined_begin_ : front().size();
    const bool has_more = lane_of(next_ + (is_joined ? 0 : 1)) != nullptr;
    if (is_shown_ && here < kJoined && has_more) join();
    is_shown_ = true;
    if (joined_begin_ < joined_.size()) return Bytes(joined_).subspan(joined_begin_);
    return front();
}

bool RecvChannel::consume(std::size_t count) {
    if (count == 0) return false;
    is_shown_ = false;
    const std::uint64_t before = next_;
    const std::size_t from_joined = std::min(count, joined_.size() - joined_begin_);
    joined_begin_ += from_joined;
    if (count > from_joined) consume_front(count - from_joined);
    return next_ > before;
}

}  // namespace pccl::transport::netplugin
