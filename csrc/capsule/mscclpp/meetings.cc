#include "csrc/capsule/mscclpp/meetings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "csrc/base/text.h"

namespace pccl::capsule::mscclpp {
namespace {

std::vector<Delivery> of_kind(const std::map<At, std::vector<Delivery>>& all, const At& at,
                              bool is_read) {
    const auto found = all.find(at);
    if (found == all.end()) return {};
    std::vector<Delivery> kept;
    std::ranges::copy_if(found->second, std::back_inserter(kept),
                         [&](const Delivery& each) { return each.is_read == is_read; });
    return kept;
}

}  // namespace

Status Meetings::for_each_operation(Note note) {
    for (std::size_t gpu = 0; gpu < plan_.gpus.size(); ++gpu)
        for (std::size_t block = 0; block < plan_.gpus[gpu].blocks.size(); ++block) {
            const ThreadBlock& operations = plan_.gpus[gpu].blocks[block];
            for (std::size_t op = 0; op < operations.size(); ++op)
                PCCL_TRY((this->*note)({static_cast<Rank>(gpu), block, op}, operations[op]));
        }
    return Status::ok();
}

template <typename... Parts>
Status Meetings::refuse(const At& at, const Parts&... parts) const {
    const Operation& operation =
        plan_.gpus[static_cast<std::size_t>(at.gpu)].blocks[at.block][at.op];
    return Status::unsupported(
        concat(place_of(file_, at.gpu, at.block, at.op, operation), ": ", parts...));
}

Result<Meetings> Meetings::make(const Plan& plan, const std::string& file) {
    Meetings meetings(plan, file);
    PCCL_TRY(meetings.for_each_operation(&Meetings::note_writes_and_signals));
    PCCL_TRY(meetings.for_each_operation(&Meetings::note_waits_and_reads));
    PCCL_TRY(meetings.check_all_met());
    return meetings;
}

std::vector<Delivery> Meetings::sent_by(const At& at, bool is_read) const {
    return of_kind(sent_, at, is_read);
}

std::vector<Delivery> Meetings::received_by(const At& at, bool is_read) const {
    return of_kind(received_, at, is_read);
}

void Meetings::add(const Delivery& delivery) {
    sent_[delivery.sent].push_back(delivery);
    received_[delivery.received].push_back(delivery);
}

Status Meetings::note_writes(const At& at, const Operation& operation) {
    for (std::size_t i = 0; i < operation.dst.size(); ++i) {
        const Chunks& dst = operation.dst[i];
        if (dst.rank == at.gpu) continue;
        const Chunks& src =
            operation.kind == Kind::kReduce ? operation.dst.front() : operation.src[i];
        if (src.rank != at.gpu) return refuse(at, "moves from one GPU to another, and is neither");
        const Delivery delivery{.src = src, .dst = dst, .sent = at};
        if (!operation.writes_packets) {
            untold_[{at.gpu, at.block, dst.rank}].push_back(delivery);
            continue;
        }
        const auto [other, is_first] =
            packets_.try_emplace({dst.rank, dst.buffer, dst.index}, Packet{delivery});
        if (!is_first)
            return refuse(at, "writes packets to ", to_string(dst.buffer), "[", dst.index,
                          "] of gpu ", dst.rank, " a second time, which one is read is unknown");
    }
    return Status::ok();
}

Status Meetings::note_writes_and_signals(const At& at, const Operation& operation) {
    PCCL_TRY(note_writes(at, operation));
    if (operation.kind != Kind::kSignal && !operation.signals) return Status::ok();
    for (const Channel& channel : operation.channels)
        signals_[{at.gpu, channel.peer, channel.type, channel.nth}].push_back(
            {at, std::exchange(untold_[{at.gpu, at.block, channel.peer}], {})});
    return Status::ok();
}

Status Meetings::note_waits_and_reads(const At& at, const Operation& operation) {
    PCCL_TRY(note_waits(at, operation));
    return note_reads(at, operation);
}

Status Meetings::note_waits(const At& at, const Operation& operation) {
    if (operation.kind != Kind::kWait) return Status::ok();
    for (const Channel& channel : operation.channels) {
        const Way way{channel.peer, at.gpu, channel.type, channel.nth};
        const std::size_t number = waits_[way]++;
        const auto found = signals_.find(way);
        if (found == signals_.end() || number >= found->second.size())
            return refuse(at, "waits for signal ", number, " of gpu ", channel.peer,
                          ", which never comes");
        const Signal& signal = found->second[number];
        last_signal_awaited_[{at.gpu, at.block, channel.peer}] = signal.at;
        for (Delivery delivery : signal.told) {
            delivery.received = at;
            add(delivery);
        }
    }
    return Status::ok();
}

Status Meetings::note_reads(const At& at, const Operation& operation) {
    for (std::size_t i = 0; i < operation.src.size(); ++i) {
        const Chunks& src = operation.src[i];
        if (src.rank != at.gpu) {
            const auto signal = last_signal_awaited_.find({at.gpu, at.block, src.rank});
            if (signal == last_signal_awaited_.end())
                return refuse(at, "reads memory of gpu ", src.rank, " without a wait for it");
            const Chunks& dst =
                operation.kind == Kind::kReduce ? operation.dst.front() : operation.dst[i];
            if (dst.rank != at.gpu)
                return refuse(at, "moves from one GPU to another, and is neither");
            add({.src = src, .dst = dst, .sent = signal->second, .received = at, .is_read = true});
        } else if (operation.reads_packets) {
            const auto found = packets_.find({src.rank, src.buffer, src.index});
            if (found == packets_.end() || found->second.has_come) continue;
            auto& [delivery, has_come] = found->second;
            if (delivery.dst.size != src.size)
                return refuse(at, "reads ", src.size, " chunks of packets where ",
                              delivery.dst.size, " are written");
            delivery.received = at;
            has_come = true;
            add(delivery);
        }
    }
    return Status::ok();
}

Status Meetings::check_all_met() const {
    for (const auto& [key, writes] : untold_)
        if (!writes.empty())
            return refuse(writes.front().sent, "writes to gpu ", writes.front().dst.rank,
                          ", and no signal tells it");
    for (const auto& [way, signals] : signals_) {
        const auto waits = waits_.find(way);
        for (std::size_t i = waits == waits_.end() ? 0 : waits->second; i < signals.size(); ++i)
            if (!signals[i].told.empty())
                return refuse(signals[i].at, "tells gpu ", std::get<1>(way),
                              " what was written, and it does not wait for that");
    }
    for (const auto& [slot, packet] : packets_)
        if (!packet.has_come)
            return refuse(packet.delivery.sent, "writes packets to gpu ", packet.delivery.dst.rank,
                          " that are never read");
    return Status::ok();
}

}  // namespace pccl::capsule::mscclpp
