// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/send_link.h"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

// Longest write with immediate: several lanes share a message, one takes it whole.
constexpr std::size_t kStripe = 64 * kKiB;
constexpr std::size_t kLongestPiece = 512 * kKiB;
// Bytes that leave though more follow.
constexpr std::size_t kMostHeld = 64 * kKiB;

}  // namespace

VerbsSendLink::~VerbsSendLink() {
    if (fault_.is_ok()) parts_.lanes.drain();
}

std::size_t VerbsSendLink::capacity(ChannelId) const {
    // The receiver returns credit for half a ring at a time.
    return ring_bytes() / 2;
}

Result<std::size_t> VerbsSendLink::send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                                 Flush flush) {
    if (status_.is_set()) return status_.get();
    std::size_t wanted = 0;
    for (const Bytes& piece : pieces) wanted += piece.size();
    PCCL_ASSIGN_OR_RETURN(const std::size_t free, room(channel, wanted));
    const std::size_t taken = std::min(free, wanted);
    copy_in(channel, pieces, taken);
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    if (flush == Flush::kNow || taken < wanted || stream.written - stream.published >= kMostHeld)
        PCCL_TRY(publish(channel));
    if (taken > 0 || wanted == 0) {
        idle_ = 0;
        return taken;
    }
    PCCL_TRY(look_now_and_then());
    return taken;
}

Result<std::size_t> VerbsSendLink::room(ChannelId channel, std::size_t wanted) {
    const Stream& stream = streams_[static_cast<std::size_t>(channel)];
    if (ring_bytes() - (stream.written - stream.consumed) < wanted) PCCL_TRY(read_credit(channel));
    return ring_bytes() - (stream.written - stream.consumed);
}

Status VerbsSendLink::read_credit(ChannelId channel) {
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    const std::uint64_t consumed =
        credits().consumed[static_cast<std::size_t>(channel)].load(std::memory_order_acquire);
    if (consumed < stream.consumed || consumed > stream.published)
        return status_.set(Status::peer_lost(
            parts_.peer, concat(parts_.peer_name, " wrote an impossible credit for its ring")));
    // The credit took a receive request here.
    if (std::exchange(stream.consumed, consumed) == consumed) return Status::ok();
    const Status polled = poll();
    return polled.is_ok() ? polled : fail(polled);
}

void VerbsSendLink::copy_in(ChannelId channel, std::span<const Bytes> pieces, std::size_t count) {
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    std::byte* const ring = parts_.staging[static_cast<std::size_t>(channel)].data();
    for (const Bytes& piece : pieces) {
        const std::size_t some = std::min(piece.size(), count);
        if (some == 0) continue;
        std::memcpy(ring + stream.written % ring_bytes(), piece.data(), some);
        stream.written += some;
        count -= some;
    }
}

Result<bool> VerbsSendLink::flush(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    PCCL_TRY(publish(channel));
    const Stream& stream = streams_[static_cast<std::size_t>(channel)];
    return stream.published == stream.written;
}

Status VerbsSendLink::publish(ChannelId channel) {
    const Stream& stream = streams_[static_cast<std::size_t>(channel)];
    const std::size_t longest = parts_.lanes.count() > 1 ? kStripe : kLongestPiece;
    while (stream.published < stream.written && fault_.is_ok()) {
        const auto bytes = std::min<std::size_t>(stream.written - stream.published, longest);
        const auto posted = post_piece(channel, bytes);
        if (!posted.is_ok()) return fail(posted.status());
        if (!*posted) break;
    }
    return fault_.is_ok() ? fault_ : fail(fault_);
}

Result<bool> VerbsSendLink::post_piece(ChannelId channel, std::size_t bytes) {
    std::size_t index = 0;
    Lane* lane = lane_for_immediate(index);
    if (lane == nullptr) {
        PCCL_TRY(poll());
        lane = lane_for_immediate(index);
    }
    if (lane == nullptr) return post_tail(channel, bytes);
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    const std::uint64_t offset = stream.published % ring_bytes();
    const LinkMemory& staging = parts_.staging[static_cast<std::size_t>(channel)];
    const PeerRange& ring = parts_.receiver.memory[static_cast<std::size_t>(channel)];
    ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(staging.data()) + offset,
                  .length = static_cast<std::uint32_t>(bytes),
                  .lkey = staging.local_key(lane->device())};
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = htobe32(immediate_of(channel, offset));
    request.wr.rdma.remote_addr = ring.address + offset;
    request.wr.rdma.rkey = ring.keys[lane->peer_device()];
    if (bytes <= lane->pair().inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
    // Several lanes share the load by what completions show.
    lane->prepare(request, parts_.lanes.count() > 1);
    PCCL_TRY(lane->post(request));
    ++immediates_[index];
    stream.published += bytes;
    stream.is_in_tail = false;
    return true;
}

/// Posts a piece without immediate, and then where the stream ends. All such pieces take the first
/// lane, whose order makes the end true.
Result<bool> VerbsSendLink::post_tail(ChannelId channel, std::size_t bytes) {
    Lane& lane = parts_.lanes[0];
    if (lane.free_slots() < 2) return false;
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    if (!std::exchange(stream.is_in_tail, true)) stream.tail_begin = stream.published;
    const std::uint64_t offset = stream.published % ring_bytes();
    const LinkMemory& staging = parts_.staging[static_cast<std::size_t>(channel)];
    const PeerRange& ring = parts_.receiver.memory[static_cast<std::size_t>(channel)];
    const PeerRange& tails = parts_.receiver.memory[kChannels];
    const std::size_t key = lane.peer_device();
    ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(staging.data()) + offset,
                  .length = static_cast<std::uint32_t>(bytes),
                  .lkey = staging.local_key(lane.device())};
    std::array<std::uint64_t, 2> ends{stream.tail_begin, stream.published + bytes};
    ibv_sge tail{
        .addr = reinterpret_cast<std::uint64_t>(ends.data()), .length = sizeof ends, .lkey = 0};
    std::array<ibv_send_wr, 2> requests{};
    requests[0].next = &requests[1];
    requests[0].sg_list = &piece;
    requests[0].wr.rdma = {.remote_addr = ring.address + offset, .rkey = ring.keys[key]};
    requests[1].sg_list = &tail;
    requests[1].wr.rdma = {
        .remote_addr = tails.address + sizeof(TailPage::Tail) * static_cast<std::size_t>(channel),
        .rkey = tails.keys[key]};
    requests[1].send_flags = IBV_SEND_INLINE;
    for (ibv_send_wr& request : requests) {
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_WRITE;
        lane.prepare(request, false);
    }
    PCCL_TRY(lane.post(requests[0]));
    stream.published += bytes;
    return true;
}

Lane* VerbsSendLink::lane_for_immediate(std::size_t& index) {
    Lane* best = nullptr;
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        Lane& lane = parts_.lanes[i];
        if (lane.free_slots() < 1 || !has_receive(i)) continue;
        if (best != nullptr && lane.load() >= best->load()) continue;
        best = &lane;
        index = i;
    }
    return best;
}

bool VerbsSendLink::has_receive(std::size_t lane) const {
    const std::uint64_t again = credits().receives[lane].load(std::memory_order_acquire);
    return immediates_[lane] - again < parts_.receiver.receives;
}

Status VerbsSendLink::poll() {
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        Lane& lane = parts_.lanes[i];
        int received = 0;
        PCCL_TRY(lane.poll([&received](const WorkCompletion&) { ++received; }));
        if (received > 0) PCCL_TRY(lane.pair().post_receives(received));
    }
    return Status::ok();
}

Status VerbsSendLink::look_now_and_then() {
    if (++idle_ % Lanes::kFreeLooks == 0) {
        if (const Status failed = parts_.lanes.check(); !failed.is_ok()) return fail(failed);
    }
    if (const Status polled = poll(); !polled.is_ok()) return fail(polled);
    const Status left = parts_.watch.look_idle();
    return left.is_ok() ? left : status_.set(left);
}

Status VerbsSendLink::look() {
    if (const Status failed = parts_.lanes.check(); !failed.is_ok()) return fail(failed);
    return parts_.watch.look();
}

Status VerbsSendLink::fail(const Status& fault) {
    if (fault_.is_ok()) fault_ = fault;
    const Status why = parts_.watch.explain(
        Status::peer_lost(parts_.peer, concat(parts_.peer_name, ": ", fault_.message())));
    return why.is_ok() ? why : status_.set(why);
}

void VerbsSendLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    parts_.watch.close(reason);
}

}  // namespace pccl::transport::verbs
