// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/recv_link.h"

#include <endian.h>

#include <algorithm>
#include <cstring>

#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

constexpr int kFreeLooks = 64;
// Writes of a peer that has left may still be on the way when its close reason arrives.
constexpr Duration kOnTheWay = std::chrono::milliseconds(50);
constexpr Duration kDrainTimeout = std::chrono::seconds(1);

}  // namespace

VerbsRecvLink::~VerbsRecvLink() {
    // Credit that was posted still reaches the sender.
    if (fault_.is_ok()) parts_.lanes.drain(Deadline::after(kDrainTimeout));
}

Result<Bytes> VerbsRecvLink::peek(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    if (stream.arrivals.end() == stream.consumed || stream.shown) {
        if (const Status fresh = refresh(); !fresh.is_ok()) PCCL_TRY(fail(fresh));
        if (stream.arrivals.end() == stream.consumed) {
            PCCL_TRY(look_idle());
            return Bytes();
        }
        idle_ = 0;
    }
    stream.shown = true;
    return Bytes(
        parts_.rings[static_cast<std::size_t>(channel)].data() + stream.consumed % ring_bytes(),
        stream.arrivals.end() - stream.consumed);
}

void VerbsRecvLink::consume(ChannelId channel, std::size_t count) {
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    stream.consumed += count;
    stream.shown = false;
    if (const Status returned = return_credit(); !returned.is_ok()) fault_ = returned;
}

Result<std::size_t> VerbsRecvLink::receive(ChannelId channel, MutableBytes into) {
    PCCL_ASSIGN_OR_RETURN(const Bytes here, peek(channel));
    const std::size_t taken = std::min(here.size(), into.size());
    if (taken == 0) return taken;
    std::memcpy(into.data(), here.data(), taken);
    consume(channel, taken);
    return taken;
}

Status VerbsRecvLink::refresh() {
    PCCL_TRY(fault_);
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        Lane& lane = parts_.lanes[i];
        int received = 0;
        Status taken;
        PCCL_TRY(lane.poll([&](const WorkCompletion& completion) {
            ++received;
            if (taken.is_ok()) taken = take(completion);
        }));
        PCCL_TRY(taken);
        if (received == 0) continue;
        PCCL_TRY(lane.pair().post_receives(received));
        reposted_[i] += static_cast<std::uint64_t>(received);
    }
    for (ChannelId channel = 0; channel < kChannels; ++channel) PCCL_TRY(take_tail(channel));
    return return_credit();
}

Status VerbsRecvLink::take(const WorkCompletion& completion) {
    Stream& stream = streams_[static_cast<std::size_t>(channel_in(completion.immediate))];
    const std::uint64_t offset = offset_in(completion.immediate);
    if (offset >= ring_bytes()) return malformed("a write beyond its ring");
    std::uint64_t begin = stream.consumed - stream.consumed % ring_bytes() + offset;
    if (begin < stream.consumed) begin += ring_bytes();
    return add(stream, begin, completion.bytes);
}

Status VerbsRecvLink::take_tail(ChannelId channel) {
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    const auto& page = *reinterpret_cast<const TailPage*>(parts_.tails.data());
    const TailPage::Tail& tail = page.tails[static_cast<std::size_t>(channel)];
    const std::uint64_t end = tail.end.load(std::memory_order_acquire);
    if (end <= stream.arrivals.end()) return Status::ok();
    const std::uint64_t begin = tail.begin.load(std::memory_order_acquire);
    if (begin > end) return Status::ok();  // the end of these bytes is not here yet
    const std::uint64_t fresh = std::max(begin, stream.arrivals.end());
    // A later piece may have come with its immediate before this end was read.
    return begin > stream.arrivals.end() ? add(stream, begin, end - begin)
                                         : add(stream, fresh, end - fresh);
}

Status VerbsRecvLink::add(Stream& stream, std::uint64_t begin, std::uint64_t bytes) {
    if (begin > stream.consumed + ring_bytes() || bytes > ring_bytes() ||
        begin + bytes > stream.consumed + ring_bytes())
        return malformed("more than its ring holds");
    stream.arrivals.add(begin, begin + bytes);
    return Status::ok();
}

Status VerbsRecvLink::malformed(std::string_view what) const {
    return Status::peer_lost(parts_.peer, concat(parts_.peer_name, " sent ", what));
}

bool VerbsRecvLink::owes_credit() const {
    for (const Stream& stream : streams_)
        if (stream.consumed - stream.credited >= ring_bytes() / 2) return true;
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i)
        if (reposted_[i] - credited_[i] >= parts_.here.receives / 2) return true;
    return false;
}

Status VerbsRecvLink::return_credit() {
    if (!owes_credit()) return Status::ok();
    Lane& lane = parts_.lanes[0];
    // The next arrival or consume() tries again.
    if (lane.free_slots() < 1) return Status::ok();
    return send_credit();
}

Status VerbsRecvLink::send_credit() {
    CreditPage& page = credits();
    for (std::size_t i = 0; i < kChannels; ++i) {
        streams_[i].credited = streams_[i].consumed;
        page.consumed[i].store(streams_[i].consumed, std::memory_order_relaxed);
    }
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        credited_[i] = reposted_[i];
        page.receives[i].store(reposted_[i], std::memory_order_release);
    }
    Lane& lane = parts_.lanes[0];
    const auto bytes =
        static_cast<std::uint32_t>(sizeof(PageCounter) * (kChannels + parts_.lanes.count()));
    // The page may have changed again when the device reads it: it then holds newer counters.
    ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(&page),
                  .length = bytes,
                  .lkey = parts_.credits.local_key(lane.device())};
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;  // ends the sender's sleep
    request.wr.rdma = {.remote_addr = parts_.sender.address,
                       .rkey = parts_.sender.keys[lane.peer_device()]};
    if (bytes <= lane.pair().inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
    lane.prepare(request, false);
    return lane.post(request);
}

Status VerbsRecvLink::look_idle() {
    if (++idle_ % kFreeLooks == 0) {
        if (const Status failed = parts_.lanes.check(); !failed.is_ok()) return fail(failed);
    }
    return settled(parts_.watch.look_idle());
}

Status VerbsRecvLink::look() {
    if (const Status failed = parts_.lanes.check(); !failed.is_ok()) return fail(failed);
    return settled(parts_.watch.look());
}

Status VerbsRecvLink::settled(const Status& gone) {
    if (gone.is_ok() || parts_.watch.is_silent()) return gone;
    const TimePoint now = system_clock().now();
    if (gone_ == TimePoint{}) gone_ = now;
    return now - gone_ < kOnTheWay ? Status::ok() : gone;
}

Status VerbsRecvLink::fail(const Status& fault) {
    if (fault_.is_ok()) fault_ = fault;
    const Status why = parts_.watch.explain(
        fault_.peer() == parts_.peer
            ? fault_
            : Status::peer_lost(parts_.peer, concat(parts_.peer_name, ": ", fault_.message())));
    return why.is_ok() ? why : status_.set(why);
}

void VerbsRecvLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    parts_.watch.close(reason);
}

}  // namespace pccl::transport::verbs
