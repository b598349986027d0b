// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/send_link.h"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

// Longest write with immediate: several lanes share a message, one takes it whole.
constexpr std::size_t kStripe = 64 * kKiB;
constexpr std::size_t kLongestPiece = 512 * kKiB;
// Bytes that leave though more follow.
constexpr std::size_t kMostHeld = 64 * kKiB;
// A link that ends still delivers what it has posted.
constexpr Duration kDeliveryTimeout = std::chrono::seconds(1);

}  // namespace

VerbsSendLink::VerbsSendLink(SendLinkParts parts) : parts_(std::move(parts)) {
    helped_->link = this;
}

VerbsSendLink::~VerbsSendLink() {
    {
        const auto lock = use();
        const Deadline deadline = Deadline::after(kDeliveryTimeout);
        while (fault_.is_ok() && !is_delivered() && !deadline.passed()) fault_ = poll();
        if (fault_.is_ok()) parts_.lanes.drain();
    }
    const std::lock_guard lock(helped_->mutex);
    helped_->link = nullptr;
}

void VerbsSendLink::watch_delivery() {
    if (parts_.lanes.count() == 1 || helped_->is_watched.exchange(true)) return;
    parts_.helper->watch({.is_over =
                              [helped = helped_] {
                                  const std::unique_lock lock(helped->mutex, std::try_to_lock);
                                  if (!lock.owns_lock()) return false;  // its program calls it
                                  if (helped->link == nullptr) return true;
                                  const Status looked = helped->link->look_at_lanes();
                                  const Status polled =
                                      looked.is_ok() ? helped->link->poll() : looked;
                                  if (!polled.is_ok())
                                      static_cast<void>(helped->link->fail(polled));
                                  const bool is_over =
                                      !polled.is_ok() || helped->link->is_delivered();
                                  if (is_over) helped->is_watched.store(false);
                                  return is_over;
                              },
                          .notify = [] {}});
}

bool VerbsSendLink::is_delivered() {
    if (!failovers_.empty() || !unsent_.empty()) return false;
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        const std::deque<PostedPiece>& pieces = posted_[i];
        if (!pieces.empty() && pieces.back().id > parts_.lanes[i].completed()) return false;
    }
    return true;
}

std::size_t VerbsSendLink::capacity(ChannelId) const { return capacity_of(ring_bytes()); }

Result<std::size_t> VerbsSendLink::send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                                 Flush flush) {
    if (status_.is_set()) return status_.get();
    const auto lock = use();
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
    PCCL_TRY(look_now_and_then_locked());
    return taken;
}

Result<std::size_t> VerbsSendLink::room(ChannelId channel, std::size_t wanted) {
    const Stream& stream = streams_[static_cast<std::size_t>(channel)];
    if (ring_bytes() - (stream.written - stream.consumed) < wanted) PCCL_TRY(read_credit(channel));
    return ring_bytes() - (stream.written - stream.consumed);
}

Status VerbsSendLink::read_credit(ChannelId channel) {
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    const std::uint64_t before = stream.consumed;
    PCCL_TRY(take_counter(credits().consumed[static_cast<std::size_t>(channel)], stream.published,
                          stream.consumed));
    if (stream.consumed == before) return Status::ok();
    // The credit took a receive request here.
    const Status polled = poll();
    return polled.is_ok() ? polled : fail(polled);
}

Status VerbsSendLink::take_counter(const PageCounter& counter, std::uint64_t most,
                                   std::uint64_t& known) {
    const std::uint64_t written = counter.load(std::memory_order_acquire);
    // A credit that was under way on a failed lane may come late. The receiver's answer to the
    // failover of that lane follows a new one.
    const bool may_be_late = parts_.lanes.count() > 1;
    if (written > most || (written < known && !may_be_late))
        return status_.set(Status::peer_lost(
            parts_.peer, concat(parts_.peer_name, " wrote an impossible credit: ", written,
                                "; expected ", known, " to ", most)));
    known = std::max(known, written);
    return Status::ok();
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
    const auto lock = use();
    PCCL_TRY(publish(channel));
    const Stream& stream = streams_[static_cast<std::size_t>(channel)];
    return stream.published == stream.written;
}

Status VerbsSendLink::publish(ChannelId channel) {
    const Stream& stream = streams_[static_cast<std::size_t>(channel)];
    const std::size_t longest = parts_.lanes.count() > 1 ? kStripe : kLongestPiece;
    while (stream.published < stream.written && fault_.is_ok() && !status_.is_set()) {
        const auto bytes = std::min<std::size_t>(stream.written - stream.published, longest);
        const auto posted = post_next(channel, bytes);
        if (!posted.is_ok()) return fail(posted.status());
        if (!*posted) break;
    }
    if (status_.is_set()) return status_.get();
    return fault_.is_ok() ? fault_ : fail(fault_);
}

Result<bool> VerbsSendLink::post_next(ChannelId channel, std::size_t bytes) {
    if (is_in_tail(channel)) return post_tail(channel, bytes);
    std::size_t lane = lane_for_immediate();
    if (lane == parts_.lanes.count()) {
        PCCL_TRY(poll());
        lane = lane_for_immediate();
    }
    if (lane == parts_.lanes.count()) return post_tail(channel, bytes);
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    const PostedPiece piece{
        .channel = channel, .begin = stream.published, .bytes = static_cast<std::uint32_t>(bytes)};
    const Status posted = post_piece(lane, piece);
    if (posted.is_ok()) {
        stream.published += bytes;
        return true;
    }
    PCCL_TRY(lose_lane(lane, posted));
    return post_next(channel, bytes);
}

Status VerbsSendLink::post_piece(std::size_t index, const PostedPiece& piece) {
    Lane& lane = parts_.lanes[index];
    const auto channel = static_cast<std::size_t>(piece.channel);
    const std::uint64_t offset = piece.begin % ring_bytes();
    const LinkMemory& staging = parts_.staging[channel];
    const PeerRange& ring = parts_.receiver.memory[channel];
    ibv_sge memory{.addr = reinterpret_cast<std::uint64_t>(staging.data()) + offset,
                   .length = piece.bytes,
                   .lkey = staging.local_key(lane.device())};
    ibv_send_wr request{};
    request.sg_list = &memory;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = htobe32(immediate_of(piece.channel, offset));
    request.wr.rdma.remote_addr = ring.address + offset;
    request.wr.rdma.rkey = ring.keys[lane.peer_device()];
    if (piece.bytes <= lane.pair().inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
    // Several lanes share the load by what completions show.
    lane.prepare(request, parts_.lanes.count() > 1);
    PCCL_TRY(lane.post(request));
    ++immediates_[index];
    remember(index, piece);
    return Status::ok();
}

/// Keeps a piece until it has been delivered, for a failover: a link of one lane has none.
void VerbsSendLink::remember(std::size_t lane, const PostedPiece& piece) {
    if (parts_.lanes.count() == 1) return;
    std::deque<PostedPiece>& pieces = posted_[lane];
    const std::uint64_t delivered = parts_.lanes[lane].completed();
    while (!pieces.empty() && pieces.front().id <= delivered) pieces.pop_front();
    pieces.push_back(piece);
    pieces.back().id = parts_.lanes[lane].posted();
    watch_delivery();
}

/// Pieces without immediate adjoin: the receiver finds their beginning and their end in the slot of
/// their lane. Another beginning comes once the receiver has consumed the last end, and so has
/// found it.
bool VerbsSendLink::is_in_tail(ChannelId channel) {
    const Stream& stream = streams_[static_cast<std::size_t>(channel)];
    return stream.tail_end > stream.consumed && read_credit(channel).is_ok() &&
           stream.tail_end > stream.consumed;
}

/// Posts a piece without immediate, and then where the stream ends. All such pieces take the first
/// lane in use, whose order makes the end true.
Result<bool> VerbsSendLink::post_tail(ChannelId channel, std::size_t bytes) {
    const std::size_t index = parts_.lanes.next_up();
    Lane& lane = parts_.lanes[index];
    if (lane.free_slots() < 2) PCCL_TRY(poll());
    if (!lane.is_up() || lane.free_slots() < 2) return false;
    Stream& stream = streams_[static_cast<std::size_t>(channel)];
    if (!is_in_tail(channel)) stream.tail_begin = stream.published;
    const std::uint64_t offset = stream.published % ring_bytes();
    const LinkMemory& staging = parts_.staging[static_cast<std::size_t>(channel)];
    const PeerRange& ring = parts_.receiver.memory[static_cast<std::size_t>(channel)];
    const PeerRange& slots = parts_.receiver.memory[kChannels];
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
    requests[0].opcode = IBV_WR_RDMA_WRITE;
    requests[0].wr.rdma = {.remote_addr = ring.address + offset, .rkey = ring.keys[key]};
    requests[1].sg_list = &tail;
    requests[1].opcode = IBV_WR_RDMA_WRITE;
    requests[1].wr.rdma = {
        .remote_addr = slots.address + bytes_of_slots(index) +
                       sizeof(LaneSlot::Tail) * static_cast<std::size_t>(channel),
        .rkey = slots.keys[key]};
    requests[1].send_flags = IBV_SEND_INLINE;
    if (has_receive(index, kSpareReceives)) {  // ends the receiver's sleep
        requests[1].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        requests[1].imm_data = htobe32(kTailImmediate);
        ++immediates_[index];
    }
    for (ibv_send_wr& request : requests) {
        request.num_sge = 1;
        lane.prepare(request, false);
    }
    if (const Status posted = lane.post(requests[0]); !posted.is_ok()) {
        PCCL_TRY(lose_lane(index, posted));
        return false;
    }
    remember(index, {.channel = channel,
                     .begin = stream.published,
                     .bytes = static_cast<std::uint32_t>(bytes)});
    stream.published += bytes;
    stream.tail_end = stream.published;
    return true;
}

std::size_t VerbsSendLink::lane_for_immediate() {
    std::size_t best = parts_.lanes.count();
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        const Lane& lane = parts_.lanes[i];
        if (!lane.is_up() || lane.free_slots() < 1 || !has_receive(i)) continue;
        if (best == parts_.lanes.count() || lane.load() < parts_.lanes[best].load()) best = i;
    }
    return best;
}

bool VerbsSendLink::has_receive(std::size_t lane, std::uint32_t spare) {
    std::uint64_t& again = receives_[lane];
    return take_counter(credits().receives[lane], immediates_[lane], again).is_ok() &&
           immediates_[lane] - again < parts_.receiver.receives + spare;
}

Status VerbsSendLink::poll() {
    for (std::size_t i = 0; i < parts_.lanes.count(); ++i) {
        Lane& lane = parts_.lanes[i];
        if (!lane.is_up()) continue;
        int received = 0;
        Status taken;
        Status polled = lane.poll([&](const WorkCompletion& completion) {
            ++received;
            if (taken.is_ok()) taken = take(completion);
        });
        PCCL_TRY(taken);
        if (polled.is_ok() && received > 0) polled = lane.pair().post_receives(received);
        if (!polled.is_ok()) PCCL_TRY(lose_lane(i, polled));
    }
    return failovers_.empty() && unsent_.empty() ? Status::ok() : continue_failover();
}

Status VerbsSendLink::take(const WorkCompletion& completion) {
    if (completion.immediate == kMessageImmediate) return take_answer();
    if (completion.immediate == kCreditImmediate) return Status::ok();
    const std::size_t lane = completion.immediate - kLaneDown;
    if (completion.immediate < kLaneDown || lane >= parts_.lanes.count())
        return Status::peer_lost(
            parts_.peer, concat(parts_.peer_name, " sent the immediate ", completion.immediate,
                                ", which stands for nothing"));
    if (!parts_.lanes[lane].is_up()) return Status::ok();
    return lose_lane(lane,
                     Status::peer_lost(parts_.peer, concat(parts_.lanes[lane].pair().port().name(),
                                                           ": the peer's port has failed")));
}

Status VerbsSendLink::lose_lane(std::size_t index, const Status& reason) {
    Lane& lane = parts_.lanes[index];
    if (!lane.is_up()) return Status::ok();
    const bool has_tails = parts_.lanes.next_up() == index;
    lane.set_down(std::string(reason.message()));
    const std::size_t left = parts_.lanes.next_up();
    if (left == parts_.lanes.count()) return reason;
    log(LogLevel::kWarning, "RDMA link to ", parts_.peer_name,
        " goes on without one path: ", reason.message());
    // Requests before the failed one are complete.
    const std::uint64_t delivered = lane.failure() ? lane.failure()->id - 1 : lane.completed();
    LaneFailover failover{.lane = index, .pieces = {}};
    for (const PostedPiece& piece : std::exchange(posted_[index], {}))
        if (piece.id > delivered) failover.pieces.push_back(piece);
    // Pieces without immediate that the receiver has not found yet count as lost.
    for (Stream& stream : streams_)
        if (has_tails) stream.tail_end = 0;
    failovers_.push_back(std::move(failover));
    // The lane may have carried the request for another one, whose answer then never comes.
    LaneFailover& first = failovers_.front();
    if (first.sequence != 0 && first.carrier == index) first.sequence = 0;
    return continue_failover();
}

Status VerbsSendLink::continue_failover() {
    PCCL_TRY(resend());
    if (failovers_.empty() || failovers_.front().sequence != 0) return Status::ok();
    const std::size_t lane = lane_for_immediate();
    return lane == parts_.lanes.count() ? Status::ok() : send_request(failovers_.front(), lane);
}

Status VerbsSendLink::send_request(LaneFailover& failover, std::size_t index) {
    failover.sequence = ++last_request_;
    failover.carrier = index;
    const std::string text = FailoverRequest{.sequence = failover.sequence,
                                             .lane = static_cast<std::uint8_t>(failover.lane),
                                             .pieces = failover.pieces}
                                 .serialise();
    std::byte* const source = parts_.credits.data() + kOutgoing;
    std::memcpy(source, text.data(), text.size());
    Lane& lane = parts_.lanes[index];
    const PeerRange& slots = parts_.receiver.memory[kChannels];
    ibv_sge memory{.addr = reinterpret_cast<std::uint64_t>(source),
                   .length = static_cast<std::uint32_t>(text.size()),
                   .lkey = parts_.credits.local_key(lane.device())};
    ibv_send_wr request{};
    request.sg_list = &memory;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = htobe32(kMessageImmediate);
    request.wr.rdma = {
        .remote_addr = slots.address + bytes_of_slots(index) + offsetof(LaneSlot, mailbox),
        .rkey = slots.keys[lane.peer_device()]};
    if (memory.length <= lane.pair().inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
    lane.prepare(request, true);
    ++immediates_[index];
    const Status posted = lane.post(request);
    return posted.is_ok() ? posted : lose_lane(index, posted);
}

Status VerbsSendLink::take_answer() {
    const auto answer =
        FailoverAnswer::parse({reinterpret_cast<const char*>(mailbox()), kMailboxBytes});
    const bool was_requested =
        answer.is_ok() && answer->sequence != 0 && answer->sequence <= last_request_;
    const bool is_awaited =
        was_requested && !failovers_.empty() && answer->sequence == failovers_.front().sequence;
    const bool fits = !is_awaited || answer->has_arrived.size() == failovers_.front().pieces.size();
    if (!was_requested || !fits)
        return Status::peer_lost(
            parts_.peer, concat(parts_.peer_name, " sent an answer that was not requested"));
    if (!is_awaited) return Status::ok();  // its request was repeated
    const LaneFailover failover = std::move(failovers_.front());
    failovers_.pop_front();
    for (std::size_t i = 0; i < failover.pieces.size(); ++i)
        if (!answer->has_arrived[i]) unsent_.push_back(failover.pieces[i]);
    return continue_failover();
}

Status VerbsSendLink::resend() {
    while (!unsent_.empty()) {
        const std::size_t lane = lane_for_immediate();
        if (lane == parts_.lanes.count()) return Status::ok();
        const PostedPiece piece = unsent_.front();
        unsent_.pop_front();
        if (const Status posted = post_piece(lane, piece); !posted.is_ok()) {
            unsent_.push_front(piece);
            return lose_lane(lane, posted);
        }
    }
    return Status::ok();
}

Status VerbsSendLink::look_now_and_then() {
    const auto lock = use();
    return look_now_and_then_locked();
}

Status VerbsSendLink::look_now_and_then_locked() {
    if (!fault_.is_ok()) return fail(fault_);
    if (++idle_ % Lanes::kFreeLooks == 0) {
        if (const Status failed = look_at_lanes(); !failed.is_ok()) return fail(failed);
    }
    if (const Status polled = poll(); !polled.is_ok()) return fail(polled);
    const Status left = parts_.watch.look_idle();
    return left.is_ok() ? left : status_.set(left);
}

Status VerbsSendLink::look_at_lanes() {
    Status reason;
    const std::size_t failed = parts_.lanes.find_failed(reason);
    return failed == parts_.lanes.count() ? Status::ok() : lose_lane(failed, reason);
}

Status VerbsSendLink::look() {
    const auto lock = use();
    if (!fault_.is_ok()) return fail(fault_);
    if (const Status failed = look_at_lanes(); !failed.is_ok()) return fail(failed);
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
