// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/lanes.h"

#include <algorithm>

#include <pccl/deadline.h>
#include "csrc/base/text/text.h"
#include "csrc/transport/verbs/port_pairs.h"

namespace pccl::transport::verbs {

Result<LinkMemory> LinkMemory::create(Mapping mapping,
                                      std::span<const std::shared_ptr<Adapter>> adapters,
                                      Access access) {
    LinkMemory memory;
    memory.mapping_ = std::move(mapping);
    for (const std::shared_ptr<Adapter>& adapter : adapters) {
        PCCL_ASSIGN_OR_RETURN(MemoryRegion region, adapter->add(memory.mapping_.memory(), access));
        memory.regions_.push_back(std::move(region));
    }
    return memory;
}

PeerRange LinkMemory::range() const {
    PeerRange range{.address = reinterpret_cast<std::uint64_t>(data()),
                    .bytes = mapping_.memory().size(),
                    .keys = {}};
    for (const MemoryRegion& region : regions_) range.keys.push_back(region->rkey);
    return range;
}

namespace {

/// Returns the ports whose devices have not failed; the error of the last one if there is none.
Result<std::vector<std::shared_ptr<Port>>> working_ports(
    std::span<const std::shared_ptr<Port>> ports) {
    std::vector<std::shared_ptr<Port>> working;
    Status failure;
    for (const std::shared_ptr<Port>& port : ports) {
        const Status state = port->adapter->check();
        if (state.is_ok())
            working.push_back(port);
        else
            failure = state;
    }
    if (working.empty()) PCCL_TRY(failure);
    return working;
}

}  // namespace

void Lane::prepare(ibv_send_wr& request, bool is_signalled) {
    request.wr_id = ++posted_;
    for (int i = 0; i < request.num_sge; ++i) unmarked_ += request.sg_list[i].length;
    const std::uint64_t since = posted_ - (marks_.empty() ? completed_ : marks_.back().id);
    if (!is_signalled && since < kSignalEvery) return;
    request.send_flags |= IBV_SEND_SIGNALED;
    marks_.push_back({posted_, unmarked_});
    load_ += std::exchange(unmarked_, 0);
}

Status Lane::fence() {
    const bool is_marked = posted_ == (marks_.empty() ? completed_ : marks_.back().id);
    if (is_marked || free_slots() < 1) return Status::ok();
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    prepare(request, true);
    return post(request);
}

Status Lane::poll(const std::function<void(const WorkCompletion&)>& received) {
    while (true) {
        PCCL_ASSIGN_OR_RETURN(const auto completion, pair_->next());
        if (!completion) return Status::ok();
        const bool is_send = (completion->id & QueuePair::kReceive) == 0;
        if (completion->status != IBV_WC_SUCCESS && is_send) {
            ++failed_;
            if (!failure_) failure_ = *completion;
        }
        if (completion->status != IBV_WC_SUCCESS) {
            // The requests of a failed device, too, end for this reason.
            PCCL_TRY(pair_->port().adapter->check_port(pair_->port().info.number));
            return Status::peer_lost(kNoRank,
                                     concat(pair_->port().name(), ": ", explain(*completion)));
        }
        if ((completion->id & QueuePair::kReceive) != 0)
            received(*completion);
        else
            complete(completion->id);
    }
}

void Lane::set_down(std::string reason) {
    down_ = std::move(reason);
    pair_->fail();
}

void Lane::flush(int receives, const std::function<void(const WorkCompletion&)>& received) {
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(100));
    while (receives > 0 && !deadline.passed()) {
        const auto completion = pair_->next();
        if (!completion.is_ok()) return;
        if (!*completion || ((*completion)->id & QueuePair::kReceive) == 0) continue;
        --receives;
        if ((*completion)->status == IBV_WC_SUCCESS) received(**completion);
    }
}

/// Requests of a queue pair complete in their order.
void Lane::complete(std::uint64_t id) {
    completed_ = id;
    while (!marks_.empty() && marks_.front().id <= id) {
        load_ -= marks_.front().bytes;
        marks_.pop_front();
    }
}

Result<Lanes> Lanes::create(std::span<const std::shared_ptr<Port>> ports, int each,
                            const QueueDepths& depths) {
    PCCL_ASSIGN_OR_RETURN(const auto working, working_ports(ports));
    Lanes lanes;
    for (int i = 0; i < each; ++i) {
        for (const std::shared_ptr<Port>& port : working) {
            if (lanes.count() == LinkEnd::kMostLanes) break;
            PCCL_ASSIGN_OR_RETURN(auto pair, QueuePair::create(port, depths));
            auto known = std::ranges::find(lanes.adapters_, port->adapter);
            if (known == lanes.adapters_.end())
                known = lanes.adapters_.insert(known, port->adapter);
            const auto device = static_cast<std::size_t>(known - lanes.adapters_.begin());
            lanes.lanes_.emplace_back(std::move(pair), device);
        }
    }
    return lanes;
}

std::vector<LaneEnd> Lanes::ends() const {
    std::vector<LaneEnd> ends;
    ends.reserve(lanes_.size());
    for (const Lane& lane : lanes_)
        ends.push_back({.device = static_cast<std::uint8_t>(lane.device()),
                        .partner = lane.partner(),
                        .pair = lane.pair().address()});
    return ends;
}

std::vector<LaneEnd> Lanes::choose_partners(std::span<const LaneEnd> peer) {
    std::vector<SubnetGid> here;
    here.reserve(lanes_.size());
    std::vector<sys::verbs::RawGid> there;
    there.reserve(peer.size());
    for (const Lane& lane : lanes_)
        here.push_back({lane.pair().address().gid, lane.pair().port().subnet_bits});
    for (const LaneEnd& end : peer) there.push_back(end.pair.gid);
    std::vector<std::size_t> indices;
    std::vector<LaneEnd> partners;
    for (const LanePair& pair : pair_lanes(here, there)) {
        lanes_[pair.here].set_partner(pair.peer);
        indices.push_back(pair.here);
        partners.push_back(peer[pair.peer]);
    }
    keep(indices, partners);
    return partners;
}

Status Lanes::take_partners(std::span<const LaneEnd> peer) {
    std::vector<std::size_t> indices;
    for (const LaneEnd& end : peer) {
        const bool is_taken = std::ranges::find(indices, end.partner) != indices.end();
        if (end.partner >= lanes_.size() || is_taken)
            return Status::invalid_argument(concat("the peer connects queue pair ",
                                                   int{end.partner}, " of ", lanes_.size(),
                                                   is_taken ? " twice" : ""));
        indices.push_back(end.partner);
    }
    keep(indices, peer);
    return Status::ok();
}

void Lanes::keep(std::span<const std::size_t> indices, std::span<const LaneEnd> peer) {
    std::vector<Lane> kept;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        kept.push_back(std::move(lanes_[indices[i]]));
        kept.back().match(peer[i]);
    }
    lanes_ = std::move(kept);
}

std::vector<QueuePair*> Lanes::pairs() {
    std::vector<QueuePair*> pairs;
    pairs.reserve(lanes_.size());
    for (Lane& lane : lanes_) pairs.push_back(&lane.pair());
    return pairs;
}

std::vector<std::shared_ptr<Port>> Lanes::ports() const {
    std::vector<std::shared_ptr<Port>> ports;
    for (const Lane& lane : lanes_) {
        const std::shared_ptr<Port>& port = lane.pair().shared_port();
        const auto is_it = [&](const std::shared_ptr<Port>& known) {
            return known->adapter == port->adapter && known->info.number == port->info.number;
        };
        if (std::ranges::none_of(ports, is_it)) ports.push_back(port);
    }
    return ports;
}

void Lanes::drain() {
    const Deadline deadline = Deadline::after(std::chrono::seconds(1));
    for (Lane& lane : lanes_) {
        if (!lane.is_up()) continue;
        const auto ignore = [](const WorkCompletion&) {};
        Status state = lane.fence();
        while (state.is_ok() && !lane.is_drained() && !deadline.passed()) state = lane.poll(ignore);
    }
}

std::size_t Lanes::next_up(std::size_t index) const {
    while (index < lanes_.size() && !lanes_[index].is_up()) ++index;
    return index;
}

std::size_t Lanes::find_failed(Status& reason) {
    std::size_t index = 0;
    for (; index < lanes_.size(); ++index) {
        const Lane& lane = lanes_[index];
        if (!lane.is_up()) continue;
        reason = lane.pair().port().adapter->check_port(lane.pair().port().info.number);
        if (!reason.is_ok()) break;
    }
    return index;
}

std::string Lanes::describe(std::span<const LaneEnd> peer) const {
    std::string text;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        const Port& port = lanes_[i].pair().port();
        const sys::verbs::GidEntry there{.index = 0, .gid = peer[i].pair.gid};
        text += concat(i > 0 ? "; " : "", port.name(), " (GID ", port.gid.index, ", ", port.reason,
                       ") to ", there.address());
    }
    return text;
}

}  // namespace pccl::transport::verbs
