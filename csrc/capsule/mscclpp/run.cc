// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/run.h"

#include <utility>

namespace pccl::capsule::mscclpp {
namespace {

// Limits on the entries of all stored clocks and of all merged clocks: bounded memory and time.
constexpr std::size_t kMostKept = 1U << 26U;
constexpr std::size_t kMostCompared = 1U << 31U;
// Limit on waits between thread blocks.
constexpr std::size_t kMostWaits = 1U << 18U;

}  // namespace

PlanRun::PlanRun(const MscclppPlan& plan) : plan_(plan), written_(plan.gpus.size()) {
    for (const PlanGpu& gpu : plan.gpus) {
        first_.push_back(count_);
        count_ += gpu.blocks.size();
    }
    for (Rank rank = 0; std::cmp_less(rank, plan.gpus.size()); ++rank)
        for (std::size_t block = 0; block < plan.gpu(rank).blocks.size(); ++block) {
            ready_.push_back(blocks_.size());
            blocks_.push_back({.next = {rank, block, 0},
                               .known = VectorClock(count_),
                               .carried = VectorClock(count_)});
        }
}

Result<RunResult> PlanRun::run() {
    while (!ready_.empty()) {
        const std::size_t block = ready_.front();
        ready_.pop_front();
        PCCL_TRY(run_block(block));
    }
    PCCL_TRY(check_all_ended());
    PCCL_TRY(check_all_signalled());
    return std::move(made_);
}

Status PlanRun::run_block(std::size_t number) {
    self_ = number;
    for (At& at = self().next; at.op < plan_.block(at).size(); ++at.op) {
        now_.reset();
        if (const auto event = missing(operation())) {
            asleep_[*event].push_back(number);
            return Status::ok();
        }
        PCCL_TRY(perform(operation()));
        if (kept_ > kMostKept || compared_ > kMostCompared || waits_ > kMostWaits)
            return refuse("there are more operations and thread blocks than are put in order");
    }
    return Status::ok();
}

const MomentPtr& PlanRun::now() {
    if (now_) return now_;
    kept_ += 2 * count_;
    now_ = std::make_shared<const ClockedOperation>(ClockedOperation{.at = at(),
                                                                     .block = self_,
                                                                     .order = order_,
                                                                     .known = self().known,
                                                                     .carried = self().carried});
    return now_;
}

std::optional<PlanEvent> PlanRun::missing(const PlanOperation& op) {
    if (op.kind == InstructionKind::kBarrier) return missing_block(op);
    std::map<PlanEvent, std::size_t> needed;
    for (const PlanEvent& event : awaited_by(op, gpu()))
        if (++needed[event] > come(event).count()) return event;
    for (const Chunks& src : op.src)
        for (int i = 0; src.are_packets && src.rank == gpu() && i < src.size; ++i)
            if (!packets_.contains(PlanEvent::packet(src, i))) return PlanEvent::packet(src, i);
    return std::nullopt;
}

std::optional<PlanEvent> PlanRun::missing_block(const PlanOperation& op) {
    const PlanEvent barrier = PlanEvent::barrier(gpu(), op.ids.front());
    auto& arrivals = self().arrivals;
    if (!arrivals) {
        auto& current = barriers_[barrier];
        if (!current) current = std::make_shared<BarrierArrivals>();
        arrivals = current;
        arrivals->come.push_back(now());
        now_.reset();
        if (arrivals->is_full(op)) current.reset();
    }
    if (arrivals->met || arrivals->is_full(op)) return std::nullopt;
    return barrier;
}

PlanRun::Come& PlanRun::come(const PlanEvent& event) {
    const auto [found, is_first] = come_.try_emplace(event);
    const auto& semaphores = plan_.gpu(event.gpu).semaphores;
    if (is_first && event.kind == PlanEvent::EventType::kSemaphore &&
        std::cmp_less(event.a, semaphores.size()))
        found->second.free =
            static_cast<std::size_t>(semaphores[static_cast<std::size_t>(event.a)]);
    return found->second;
}

Status PlanRun::perform(const PlanOperation& op) {
    ++order_;
    if (op.kind == InstructionKind::kBarrier) pass_barrier();
    for (const PlanEvent& event : awaited_by(op, gpu())) take(event);
    for (std::size_t i = 0; i < op.src.size(); ++i) {
        const Chunks& src = op.src[i];
        if (src.rank != gpu())
            PCCL_TRY(read(op, i));
        else if (src.are_packets)
            take_packets(src);
    }
    receive_signalled();
    wait_for_known();
    self().known.reach(self_, at().op + 1);
    PCCL_TRY(write(op));
    for (Packet* const packet : std::exchange(taken_, {})) packet->read = now();
    for (WrittenTo::Received* const each : std::exchange(received_, {})) each->at = now();
    for (const PlanEvent& event : events_of(op, gpu())) happen(event);
    self().carried.reach(self_, at().op + 1);
    return Status::ok();
}

void PlanRun::pass_barrier() {
    const auto arrivals = std::exchange(self().arrivals, nullptr);
    if (arrivals->met) {
        learn(*arrivals->met);
        return;
    }
    for (const MomentPtr& come : arrivals->come) learn(*come);
    self().known.reach(self_, at().op + 1);
    arrivals->met = now();
    now_.reset();
    wake(PlanEvent::barrier(gpu(), operation().ids.front()));
}

void PlanRun::take(const PlanEvent& event) {
    Come& of = come(event);
    ++taken_of_[event];
    if (of.free > 0) {
        --of.free;
        return;
    }
    const MomentPtr moment = std::move(of.moments.front());
    of.moments.pop_front();
    if (event.kind == PlanEvent::EventType::kSemaphore) {
        learn(*moment);
        return;
    }
    observe(*moment);
    signals_[{moment->block, gpu()}].push_back(moment);
}

void PlanRun::happen(const PlanEvent& event) {
    if (event.kind == PlanEvent::EventType::kSignal ||
        event.kind == PlanEvent::EventType::kSemaphore)
        come(event).moments.push_back(now());
    if (event.kind != PlanEvent::EventType::kBarrier) wake(event);
}

void PlanRun::wake(const PlanEvent& event) {
    const auto found = asleep_.find(event);
    if (found == asleep_.end()) return;
    for (const std::size_t block : found->second) ready_.push_back(block);
    asleep_.erase(found);
}

Status PlanRun::check_all_ended() {
    std::map<std::size_t, Stalled> stalled;
    for (const auto& [event, sleepers] : asleep_)
        for (const std::size_t block : sleepers) {
            const auto& arrivals = blocks_[block].arrivals;
            const std::size_t turns = arrivals ? arrivals->come.size() : taken_of_[event];
            stalled[block] = {blocks_[block].next, event, static_cast<int>(turns)};
        }
    return stalled.empty() ? Status::ok() : explain_stall(plan_, stalled);
}

Status PlanRun::check_all_signalled() const {
    for (std::size_t to = 0; to < written_.size(); ++to)
        for (const auto& [block, all] : written_[to]) {
            if (all.unsignalled.empty()) continue;
            const At& at = all.unsignalled.front().at->at;
            const ClockedOperation* const signal = signal_of(static_cast<Rank>(to), block, at.op);
            return Status::unsupported(
                concat(plan_.place_of(signal == nullptr ? at : signal->at),
                       signal == nullptr ? ": writes to gpu " : ": signals its writes to gpu ", to,
                       signal == nullptr ? ", and sends no signal after it"
                                         : ", which does not wait for the signal"));
        }
    return Status::ok();
}

const ClockedOperation* PlanRun::signal_of(Rank to, std::size_t block, std::size_t op) const {
    for (const auto& [event, of] : come_)
        if (event.kind == PlanEvent::EventType::kSignal && event.gpu == to)
            for (const MomentPtr& moment : of.moments)
                if (op < moment->known[block]) return moment.get();
    return nullptr;
}

Result<RunResult> execute(const MscclppPlan& plan) { return PlanRun(plan).run(); }

}  // namespace pccl::capsule::mscclpp
