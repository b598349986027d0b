// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback/pipe.h"

#include <algorithm>

#include "csrc/base/ids.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::loopback {
namespace {

/// Returns a different number for every direction of every stream of every link.
std::uint64_t stream_id(const PipeArgs& args, ChannelId channel, Pipe::End end) {
    std::uint64_t id = args.ordinal;
    for (const int part : {args.request.source, args.request.destination, args.request.channel,
                           channel, static_cast<int>(end)})
        id = (id ^ static_cast<std::uint64_t>(part + 1)) * 0x100000001B3ULL;  // FNV-1a
    return id;
}

}  // namespace

Pipe::Pipe(const PipeArgs& args) : args_(args) {
    for (ChannelId channel = 0; channel < kChannels; ++channel) {
        streams_.push_back(
            {.send_faults = {args.faults, stream_id(args, channel, End::kSender)},
             .receive_faults = {args.faults, stream_id(args, channel, End::kReceiver)},
             .held = {}});
    }
}

void Pipe::join(End end, Waiter& waiter, std::shared_ptr<RmaRegistry> memory) {
    const std::lock_guard lock(mutex_);
    if (has_left(end)) return;
    waiters_[static_cast<std::size_t>(end)] = &waiter;
    memories_[static_cast<std::size_t>(end)] = std::move(memory);
}

std::shared_ptr<RmaRegistry> Pipe::memory_of(End end) {
    const std::lock_guard lock(mutex_);
    return has_left(end) ? nullptr : memories_[static_cast<std::size_t>(end)];
}

void Pipe::leave(End end) {
    const std::lock_guard lock(mutex_);
    left_[static_cast<std::size_t>(end)] = true;
    waiters_[static_cast<std::size_t>(end)] = nullptr;
    wake(end == End::kSender ? End::kReceiver : End::kSender);
}

Result<std::size_t> Pipe::send(ChannelId channel, Bytes bytes, Flush flush) {
    const std::lock_guard lock(mutex_);
    Stream& to = stream(channel);
    if (to.send_faults.resets()) reset();
    if (has_left(End::kReceiver)) return lost(args_.request.destination);
    const std::size_t room = std::min(bytes.size(), args_.capacity - to.unread);
    const std::size_t taken = to.send_faults.written(room);
    const Bytes some = bytes.first(taken);
    to.held.insert(to.held.end(), some.begin(), some.end());
    to.unread += taken;
    if (flush == Flush::kNow || room < bytes.size()) publish(to);
    return taken;
}

Status Pipe::flush(ChannelId channel) {
    const std::lock_guard lock(mutex_);
    if (has_left(End::kReceiver)) return lost(args_.request.destination);
    publish(stream(channel));
    return Status::ok();
}

void Pipe::publish(Stream& stream) {
    if (stream.held.empty()) return;
    stream.newest = std::max(stream.newest, args_.clock->now() + stream.send_faults.delay());
    stream.segments.push_back({std::exchange(stream.held, {}), stream.newest});
    wake(End::kReceiver);
}

Result<std::size_t> Pipe::take(ChannelId channel, std::vector<std::byte>& into) {
    const std::lock_guard lock(mutex_);
    Stream& from = stream(channel);
    const TimePoint now = args_.clock->now();
    std::size_t arrived = 0;
    for (const Segment& segment : from.segments)
        if (segment.arrives <= now) arrived += segment.bytes.size();
    std::size_t left = from.receive_faults.read(arrived);
    const std::size_t taken = left;
    while (left > 0) {
        std::vector<std::byte>& first = from.segments.front().bytes;
        const auto end = first.begin() + static_cast<std::ptrdiff_t>(std::min(left, first.size()));
        left -= std::min(left, first.size());
        into.insert(into.end(), first.begin(), end);
        first.erase(first.begin(), end);
        if (first.empty()) from.segments.pop_front();
    }
    if (from.segments.empty() && taken == 0 && has_left(End::kSender))
        return lost(args_.request.source);
    return taken;
}

void Pipe::free(ChannelId channel, std::size_t count) {
    const std::lock_guard lock(mutex_);
    stream(channel).unread -= count;
    wake(End::kSender);
}

/// Breaks the pipe: bytes in flight are lost, as when a network breaks.
void Pipe::reset() {
    const TimePoint now = args_.clock->now();
    for (Stream& stream : streams_) {
        std::erase_if(stream.segments, [now](const Segment& s) { return s.arrives > now; });
        stream.held.clear();
    }
    left_ = {true, true};
    wake(End::kReceiver);
}

void Pipe::wake(End end) {
    if (Waiter* waiter = waiters_[static_cast<std::size_t>(end)]) waiter->wake();
}

Status Pipe::lost(Rank peer) const {
    return Status::peer_lost(peer, concat(peer_name(peer), " closed its end of a loopback link"));
}

}  // namespace pccl::transport::loopback
