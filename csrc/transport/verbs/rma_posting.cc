// SPDX-License-Identifier: Apache-2.0

// Requests of one-sided access on their way into the send queues, with the immediates behind them.
#include <endian.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/transport/verbs/rma_peer.h"

namespace pccl::transport::verbs {

void VerbsPeer::post_begun() {
    // An error ends the link at the next finish().
    static_cast<void>(post_waiting());
}

Status VerbsPeer::post_waiting(std::size_t left) {
    while (waiting_.size() > left) {
        RmaLane* const lane = best_lane();
        if (lane != nullptr) {
            PCCL_TRY(post_some(*lane));
            continue;
        }
        const bool is_any_open = std::ranges::any_of(lanes_, [](const RmaLane& each) {
            return each.state == RmaLane::State::kOpen || each.state == RmaLane::State::kOpening ||
                   each.state == RmaLane::State::kConnecting;
        });
        for (std::size_t i = 0; i < lanes_.size(); ++i)
            if (lanes_[i].state == RmaLane::State::kClosed) PCCL_TRY(open_lane(i));
        if (is_any_open || std::ranges::any_of(lanes_, [](const RmaLane& each) {
                return each.state != RmaLane::State::kBroken;
            }))
            break;
        return Status::peer_lost(out_.peer(), concat(out_.peer_name(), ": no RDMA path is left; ",
                                                     lanes_.front().failure));
    }
    return mailbox_.send();
}

VerbsPeer::RmaLane* VerbsPeer::best_lane() {
    RmaLane* best = nullptr;
    for (RmaLane& each : lanes_) {
        const bool is_usable = each.state == RmaLane::State::kOpen &&
                               each.lane->free_slots() >= WaitingRequests::kLeastRoom;
        if (!is_usable) continue;
        if (best == nullptr || each.lane->load() < best->lane->load()) best = &each;
    }
    return best;
}

Status VerbsPeer::post_some(RmaLane& lane) {
    chain_.clear();
    waiting_.take(std::min(kChain, static_cast<std::size_t>(lane.lane->free_slots())), chain_);
    return post_taken(lane);
}

Status VerbsPeer::post_taken(RmaLane& lane) {
    Status posted = post_chain(*lane.lane);
    if (posted.is_ok())
        std::ranges::move(chain_, std::back_inserter(lane.posted));
    else
        for (; !chain_.empty(); chain_.pop_back()) waiting_.put_back(std::move(chain_.back()));
    return posted;
}

Status VerbsPeer::post_chain(Lane& to) {
    std::array<ibv_send_wr, kChain> chain;
    std::array<ibv_sge, kChain> pieces;
    const std::size_t count = chain_.size();
    for (std::size_t i = 0; i < count; ++i) {
        PCCL_TRY(describe(chain_[i], to, chain[i], pieces[i]));
        chain[i].next = i + 1 < count ? &chain[i + 1] : nullptr;
        to.prepare(chain[i], i + 1 == count);
    }
    return to.post(chain.front());
}

/// Fills in the work request of a request, and its memory.
Status VerbsPeer::describe(const VerbsRequest& request, const Lane& to, ibv_send_wr& posted,
                           ibv_sge& piece) const {
    posted = {};
    if (request.is_immediate()) {
        posted.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        posted.imm_data = htobe32(request.immediate_data);
        return Status::ok();
    }
    PCCL_ASSIGN_OR_RETURN(const LocalPiece local, registrations_->find(request.here, to.device()));
    piece = {.addr = reinterpret_cast<std::uint64_t>(request.here),
             .length = request.bytes,
             .lkey = local.key};
    const std::vector<std::uint32_t>& keys = request.memory->key().devices;
    if (to.peer_device() >= keys.size())
        return protocol_error("registered memory with fewer RDMA devices than it opened paths of");
    posted.sg_list = &piece;
    posted.num_sge = 1;
    posted.opcode = request.op == RmaOp::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    posted.wr.rdma = {.remote_addr = request.there, .rkey = keys[to.peer_device()]};
    if (request.op == RmaOp::kWrite && request.is_of_host &&
        request.bytes <= to.pair().inline_bytes())
        posted.send_flags |= IBV_SEND_INLINE;
    return Status::ok();
}

std::vector<RmaImmediate> VerbsPeer::post_immediates() {
    // The last doorbell of the waiting requests contains the immediate behind them. An error ends
    // the link at the next finish().
    std::vector<RmaImmediate> posted;
    if (!post_waiting(kChain - 1).is_ok()) return posted;
    RmaLane* const last = waiting_.is_empty() ? nullptr : best_lane();
    if (!takes_immediates(last)) {
        post_begun();
        return posted;
    }
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        const bool is_last = &lanes_[i] == last;
        if (!is_last && lanes_[i].posted.empty()) continue;
        chain_.clear();
        if (is_last) waiting_.take(kChain - 1, chain_);
        if (!post_immediate(i, posted).is_ok()) return {};
    }
    return posted;
}

bool VerbsPeer::takes_immediates(const RmaLane* last) const {
    if (waiting_.size() >= kChain || (last == nullptr && !waiting_.is_empty())) return false;
    return std::ranges::all_of(lanes_, [&](const RmaLane& lane) {
        const bool is_last = &lane == last;
        return (!is_last && lane.posted.empty()) ||
               lane.takes_immediate(is_last ? waiting_.size() : 0);
    });
}

/// Posts chain_ and an immediate behind it.
Status VerbsPeer::post_immediate(std::size_t index, std::vector<RmaImmediate>& posted) {
    RmaLane& lane = lanes_[index];
    const RmaImmediate immediate{.lane = static_cast<std::uint32_t>(index),
                                 .pair = lane.pair,
                                 .number = lane.immediates + 1};
    chain_.push_back({.memory = {},
                      .copy = {},
                      .immediate = immediate.number,
                      .immediate_data = value_of(immediate)});
    PCCL_TRY(post_taken(lane));
    lane.immediates = immediate.number;
    posted.push_back(immediate);
    return Status::ok();
}

}  // namespace pccl::transport::verbs
