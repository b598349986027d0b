// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/recv_link.h"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

// Writes of a peer that has left may still be on the way when its close reason arrives.
constexpr Duration kOnTheWay = std::chrono::milliseconds(50);

}  // namespace

VerbsRecvLink::~VerbsRecvLink() {
    // Credit that was posted still reaches the sender.
    if (fault_.is_ok()) parts_.lanes.drain();
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
    return receive_peeked(*this, channel, into);
}

Status VerbsRecvLink::refresh() {
    PCCL_TRY(fault_);
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        Lane& lane = parts_.lanes[i];
        if (!lane.is_up()) continue;
        int received = 0;
        Status taken;
        Status polled = lane.poll([&](const WorkCompletion& completion) {
            ++received;
            if (taken.is_ok()) taken = take(completion, i);
        });
        PCCL_TRY(taken);
        // The sender may have given up the lane by a message on another one.
        if (!lane.is_up()) continue;
        reposted_[i] += static_cast<std::uint64_t>(received);
        if (polled.is_ok() && received > 0) polled = lane.pair().post_receives(received);
        if (!polled.is_ok()) PCCL_TRY(lose_lane(i, polled));
    }
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i)
        if (!is_closed_[i]) PCCL_TRY(take_tails(i));
    return return_credit();
}

Status VerbsRecvLink::take(const WorkCompletion& completion, std::size_t lane) {
    if (completion.immediate == kMessageImmediate) return answer_failover(lane);
    if (completion.immediate == kTailImmediate) return Status::ok();
    return take_piece(completion);
}

Status VerbsRecvLink::take_piece(const WorkCompletion& completion) {
    Stream& stream = streams_[static_cast<std::size_t>(channel_in(completion.immediate))];
    const std::uint64_t offset = offset_in(completion.immediate);
    if (offset >= ring_bytes()) return malformed("a write beyond its ring");
    std::uint64_t begin = stream.consumed - stream.consumed % ring_bytes() + offset;
    if (begin < stream.consumed) begin += ring_bytes();
    return add(stream, begin, completion.bytes);
}

Status VerbsRecvLink::lose_lane(std::size_t index, const Status& reason) {
    Lane& lane = parts_.lanes[index];
    if (!lane.is_up()) return Status::ok();
    lane.set_down(std::string(reason.message()));
    PCCL_TRY(close_lane(index));
    if (parts_.lanes.next_up() == parts_.lanes.count()) return reason;
    // Credit that was on its way on the lane may be lost.
    PCCL_TRY(send_credit());
    return report_lost_lanes();
}

Status VerbsRecvLink::report_lost_lanes() {
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        const std::size_t left = parts_.lanes.next_up();
        if (left == parts_.lanes.count()) return Status::ok();
        if (parts_.lanes[i].is_up() || is_listed_[i]) continue;
        if (reporter_[i] && parts_.lanes[*reporter_[i]].is_up()) continue;
        reporter_[i] = left;
        const Status posted =
            post_write(parts_.lanes[left], {}, 0, kLaneDown + static_cast<std::uint32_t>(i));
        if (!posted.is_ok()) return lose_lane(left, posted);
    }
    return Status::ok();
}

Status VerbsRecvLink::close_lane(std::size_t index) {
    if (std::exchange(is_closed_[index], true)) return Status::ok();
    Status taken;
    parts_.lanes[index].flush(static_cast<int>(parts_.here.receives + kSpareReceives),
                              [&](const WorkCompletion& completion) {
                                  if (offset_in(completion.immediate) < kLaneDown && taken.is_ok())
                                      taken = take_piece(completion);
                              });
    return taken.is_ok() ? take_tails(index) : taken;
}

Status VerbsRecvLink::answer_failover(std::size_t carrier) {
    const auto& mailbox = slot(carrier).mailbox;
    const auto request =
        FailoverRequest::parse({reinterpret_cast<const char*>(mailbox.data()), mailbox.size()});
    if (!request.is_ok() || request->lane >= parts_.lanes.count())
        return malformed("a failover that cannot be");
    Lane& lost = parts_.lanes[request->lane];
    if (lost.is_up()) lost.set_down("the sender has lost it");
    is_listed_[request->lane] = true;
    PCCL_TRY(close_lane(request->lane));
    FailoverAnswer answer{.sequence = request->sequence, .has_arrived = {}};
    for (const PostedPiece& piece : request->pieces) {
        const Arrivals& arrivals = streams_[static_cast<std::size_t>(piece.channel)].arrivals;
        answer.has_arrived.push_back(arrivals.has(piece.begin, piece.end()));
    }
    if (parts_.lanes.next_up() == parts_.lanes.count())
        return Status::peer_lost(parts_.peer, concat(parts_.peer_name, ": no RDMA path is left"));
    PCCL_TRY(send_credit());
    PCCL_TRY(report_lost_lanes());
    // The sender repeats its request if this lane is lost.
    if (!parts_.lanes[carrier].is_up()) return Status::ok();
    const std::string text = answer.serialise();
    std::byte* const source = parts_.credits.data() + kOutgoing;
    std::memcpy(source, text.data(), text.size());
    Lane& lane = parts_.lanes[carrier];
    const ibv_sge memory{.addr = reinterpret_cast<std::uint64_t>(source),
                         .length = static_cast<std::uint32_t>(text.size()),
                         .lkey = parts_.credits.local_key(lane.device())};
    return post_write(lane, memory, kMailbox, kMessageImmediate);
}

/// Writes into the sender's page.
Status VerbsRecvLink::post_write(Lane& lane, ibv_sge memory, std::uint64_t offset,
                                 std::uint32_t immediate) {
    ibv_send_wr request{};
    request.sg_list = &memory;
    request.num_sge = memory.length > 0 ? 1 : 0;
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = htobe32(immediate);
    request.wr.rdma = {.remote_addr = parts_.sender.address + offset,
                       .rkey = parts_.sender.keys[lane.peer_device()]};
    if (memory.length <= lane.pair().inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
    lane.prepare(request, false);
    return lane.post(request);
}

Status VerbsRecvLink::take_tails(std::size_t lane) {
    for (ChannelId channel = 0; channel < kChannels; ++channel)
        PCCL_TRY(take_tail(channel, slot(lane).tails[static_cast<std::size_t>(channel)]));
    return Status::ok();
}

Status VerbsRecvLink::take_tail(ChannelId channel, const LaneSlot::Tail& tail) {
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    const std::uint64_t end = tail.end.load(std::memory_order_acquire);
    if (end <= stream.arrivals.end()) return Status::ok();
    const std::uint64_t begin = tail.begin.load(std::memory_order_acquire);
    if (begin > end) return Status::ok();  // the end of these bytes is not here yet
    // A later piece may have come with its immediate before this end was read.
    const std::uint64_t fresh = std::max(begin, stream.arrivals.end());
    return add(stream, fresh, end - fresh);
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
        if (stream.consumed - stream.credited >= credit_step(ring_bytes())) return true;
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i)
        if (reposted_[i] - credited_[i] >= parts_.here.receives / 2) return true;
    return false;
}

Status VerbsRecvLink::return_credit() {
    if (!owes_credit()) return Status::ok();
    const std::size_t lane = parts_.lanes.next_up();
    // The next arrival or consume() tries again.
    if (lane == parts_.lanes.count() || parts_.lanes[lane].free_slots() < 1) return Status::ok();
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
    const std::size_t index = parts_.lanes.next_up();
    Lane& lane = parts_.lanes[index];
    // The page may have changed again when the device reads it: it then holds newer counters. The
    // immediate ends the sender's sleep.
    const Status posted = post_write(lane,
                                     {.addr = reinterpret_cast<std::uint64_t>(&page),
                                      .length = static_cast<std::uint32_t>(
                                          sizeof(PageCounter) * (kChannels + parts_.lanes.count())),
                                      .lkey = parts_.credits.local_key(lane.device())},
                                     0, kCreditImmediate);
    return posted.is_ok() ? posted : lose_lane(index, posted);
}

Status VerbsRecvLink::look_at_lanes() {
    Status reason;
    const std::size_t failed = parts_.lanes.find_failed(reason);
    return failed == parts_.lanes.count() ? Status::ok() : lose_lane(failed, reason);
}

Status VerbsRecvLink::look_idle() {
    PCCL_TRY(lost_);
    if (++idle_ % Lanes::kFreeLooks == 0) {
        if (const Status failed = look_at_lanes(); !failed.is_ok()) return fail(failed);
    }
    return settled(parts_.watch.look_idle());
}

Status VerbsRecvLink::look() {
    if (!fault_.is_ok()) return fail(fault_);
    if (const Status failed = look_at_lanes(); !failed.is_ok()) return fail(failed);
    return settled(parts_.watch.look());
}

Status VerbsRecvLink::settled(const Status& gone) {
    if (gone.is_ok()) return gone;
    const TimePoint now = system_clock().now();
    if (gone_ == TimePoint{}) gone_ = now;
    if (now - gone_ >= kOnTheWay || parts_.watch.is_silent()) lost_ = gone;
    return lost_;
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
