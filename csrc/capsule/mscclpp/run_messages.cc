// SPDX-License-Identifier: Apache-2.0

// Messages of a plan, with the clocks that they carry.
#include <algorithm>
#include <utility>

#include "csrc/capsule/mscclpp/run.h"

namespace pccl::capsule::mscclpp {
namespace {

constexpr std::size_t kMostPackets = 1U << 20U;

}  // namespace

void PlanRun::observe(const ClockedOperation& moment) {
    compared_ += count_;
    self().known.merge(moment.known);
}

void PlanRun::learn(const ClockedOperation& moment) {
    observe(moment);
    wait_for(moment.block, moment.known[moment.block]);
    carry(moment);
}

void PlanRun::carry(const ClockedOperation& moment) {
    compared_ += count_;
    self().carried.merge(moment.carried);
}

void PlanRun::wait_for(std::size_t block, std::size_t ops) {
    if (block == self_ || self().carried[block] >= ops) return;
    self().carried.reach(block, ops);
    made_.waits[at()].push_back({block - first_[static_cast<std::size_t>(gpu())], ops});
    ++waits_;
}

void PlanRun::wait_for_known() {
    const std::size_t first = first_[static_cast<std::size_t>(gpu())];
    for (std::size_t i = 0; i < plan_.gpu(gpu()).blocks.size(); ++i)
        wait_for(first + i, self().known[first + i]);
}

void PlanRun::receive(const Written& written) {
    made_.deliveries.push_back(
        {.src = written.src, .dst = written.dst, .sent = written.at->at, .received = at()});
    note_writer(written.dst);
    carry(*written.at);
}

void PlanRun::receive_signalled() {
    for (auto& [block, all] : written_[static_cast<std::size_t>(gpu())]) {
        const std::size_t known = self().known[block];
        std::size_t& seen = self().seen[block];
        for (; seen < all.received.size() && all.received[seen].op < known; ++seen)
            learn(*all.received[seen].at);
        for (; !all.unsignalled.empty() && all.unsignalled.front().at->at.op < known; ++seen) {
            receive(all.unsignalled.front());
            all.received.push_back({.op = all.unsignalled.front().at->at.op});
            received_.push_back(&all.received.back());
            all.unsignalled.pop_front();
        }
    }
}

Status PlanRun::read(const PlanOperation& op, std::size_t i) {
    const Chunks& src = op.src[i];
    const Chunks& dst = op.kind == InstructionKind::kReduce ? op.dst.front() : op.dst[i];
    const MomentPtr signal = last_signal_of(src.rank);
    if (!signal) return refuse("reads memory of gpu ", src.rank, " without a wait for it");
    // A sum that is made in parts must begin with whole chunks of its own GPU.
    const bool has_parts = op.kind == InstructionKind::kMove || op.src.front().rank == gpu();
    const LastWrite whole{signal->at, signal->block, signal->at.op + 1};
    const Chunks home = plan_.home_of(src);
    const auto sender_of = [&](int k) {
        const LastWrite& writer = writer_of(home, k);
        const std::size_t known =
            writer.block == signal->block ? whole.ops : signal->carried[writer.block];
        return has_parts && writer.ops > known ? writer : whole;
    };
    for (int begin = 0, end = 0; begin < src.size; begin = end) {
        const LastWrite sender = sender_of(begin);
        for (end = begin + 1; end < src.size && sender_of(end).at == sender.at;) ++end;
        Chunks part = src;
        Chunks to = dst;
        part.index += begin;
        to.index += begin;
        part.size = to.size = end - begin;
        receive_read(part, to, sender);
        if (sender.at == signal->at) carry(*signal);
    }
    return Status::ok();
}

MomentPtr PlanRun::last_signal_of(Rank rank) {
    MomentPtr last;
    const std::size_t first = first_[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < plan_.gpu(rank).blocks.size(); ++i) {
        const auto found = signals_.find({first + i, gpu()});
        if (found == signals_.end()) continue;
        const auto known = std::find_if(
            found->second.rbegin(), found->second.rend(),
            [&](const MomentPtr& each) { return each->at.op < self().known[first + i]; });
        if (known == found->second.rend()) continue;
        if (!last || (*known)->order > last->order) last = *known;
    }
    return last;
}

void PlanRun::receive_read(const Chunks& src, const Chunks& dst, const LastWrite& sender) {
    made_.deliveries.push_back(
        {.src = src, .dst = dst, .sent = sender.at, .received = at(), .is_read = true});
    note_writer(dst);
    self().carried.reach(sender.block, sender.ops - 1);
}

LastWrite& PlanRun::writer_of(const Chunks& chunks, int i) {
    auto& writers = writers_[{chunks.rank, chunks.buffer}];
    if (writers.empty())
        writers.resize(static_cast<std::size_t>(plan_.chunks_in(chunks.rank, chunks.buffer)));
    return writers[static_cast<std::size_t>(chunks.index) + static_cast<std::size_t>(i)];
}

void PlanRun::note_writer(const Chunks& dst) {
    const Chunks home = plan_.home_of(dst);
    for (int i = 0; i < dst.size; ++i) writer_of(home, i) = {at(), self_, at().op + 1};
}

void PlanRun::take_packets(const Chunks& src) {
    std::optional<Written> message;
    const ClockedOperation* known = nullptr;
    for (int i = 0; i < src.size; ++i) {
        Packet& packet = packets_.at(PlanEvent::packet(src, i));
        const Written& written = packet.written;
        const bool is_own = written.at->at.gpu == gpu();
        if (is_own || packet.read) {
            const ClockedOperation& moment = is_own ? *written.at : *packet.read;
            if (std::exchange(known, &moment) != &moment) learn(moment);
            continue;
        }
        if (std::exchange(packet.is_taken, true)) continue;  // by this operation
        taken_.push_back(&packet);
        if (message && message->at == written.at &&
            written.src.index == message->src.index + message->src.size &&
            written.src.buffer == message->src.buffer &&
            written.dst.index == message->dst.index + message->dst.size) {
            ++message->src.size;
            ++message->dst.size;
            continue;
        }
        if (message) receive_packets(*message);
        message = written;
    }
    if (message) receive_packets(*message);
}

void PlanRun::receive_packets(const Written& message) {
    observe(*message.at);
    receive(message);
}

Status PlanRun::write(const PlanOperation& op) {
    for (std::size_t i = 0; i < op.dst.size(); ++i) {
        const Chunks& dst = op.dst[i];
        const Chunks& src = op.kind == InstructionKind::kReduce ? op.dst.front() : op.src[i];
        if (dst.rank == gpu()) note_writer(dst);
        if (dst.are_packets)
            PCCL_TRY(write_packets(src, dst));
        else if (dst.rank != gpu())
            written_[static_cast<std::size_t>(dst.rank)][self_].unsignalled.push_back(
                {src, dst, now()});
    }
    return Status::ok();
}

Status PlanRun::write_packets(const Chunks& src, const Chunks& dst) {
    if (packets_.size() + static_cast<std::size_t>(dst.size) > kMostPackets)
        return refuse("there are more packets than are put in order");
    for (int i = 0; i < dst.size; ++i) {
        Written written{.src = src, .dst = dst, .at = now()};
        written.src.index += i;
        written.dst.index += i;
        written.src.size = written.dst.size = 1;
        if (!packets_.try_emplace(PlanEvent::packet(dst, i), Packet{.written = std::move(written)})
                 .second)
            return refuse("writes packets to ", to_string(dst.buffer), "[", dst.index + i,
                          "] of gpu ", dst.rank, " a second time, which one is read is unknown");
    }
    return Status::ok();
}

}  // namespace pccl::capsule::mscclpp
