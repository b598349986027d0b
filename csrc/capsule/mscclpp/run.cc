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

Run::Run(const Plan& plan) : plan_(plan), written_(plan.gpus.size()) {
    for (const Gpu& gpu : plan.gpus) {
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

Result<Execution> Run::run() {
    while (!ready_.empty()) {
        const std::size_t block = ready_.front();
        ready_.pop_front();
        PCCL_TRY(run_block(block));
    }
    PCCL_TRY(check_all_ended());
    PCCL_TRY(check_all_signalled());
    return std::move(made_);
}

Status Run::run_block(std::size_t number) {
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

const MomentPtr& Run::now() {
    if (now_) return now_;
    kept_ += 2 * count_;
    now_ = std::make_shared<const Moment>(Moment{.at = at(),
                                                 .block = self_,
                                                 .order = order_,
                                                 .known = self().known,
                                                 .carried = self().carried});
    return now_;
}

std::optional<Event> Run::missing(const Operation& op) {
    if (op.kind == Kind::kBarrier) return missing_block(op);
    std::map<Event, std::size_t> needed;
    for (const Event& event : awaited_by(op, gpu()))
        if (++needed[event] > come(event).count()) return event;
    for (const Chunks& src : op.src)
        for (int i = 0; src.are_packets && src.rank == gpu() && i < src.size; ++i)
            if (!packets_.contains(Event::packet(src, i))) return Event::packet(src, i);
    return std::nullopt;
}

std::optional<Event> Run::missing_block(const Operation& op) {
    const Event barrier = Event::barrier(gpu(), op.ids.front());
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

Run::Come& Run::come(const Event& event) {
    const auto [found, is_first] = come_.try_emplace(event);
    const auto& semaphores = plan_.gpu(event.gpu).semaphores;
    if (is_first && event.kind == Event::Kind::kSemaphore &&
        std::cmp_less(event.a, semaphores.size()))
        found->second.free =
            static_cast<std::size_t>(semaphores[static_cast<std::size_t>(event.a)]);
    return found->second;
}

Status Run::perform(const Operation& op) {
    ++order_;
    if (op.kind == Kind::kBarrier) pass_barrier();
    for (const Event& event : awaited_by(op, gpu())) take(event);
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
    for (const Event& event : events_of(op, gpu())) happen(event);
    self().carried.reach(self_, at().op + 1);
    return Status::ok();
}

void Run::pass_barrier() {
    const auto arrivals = std::exchange(self().arrivals, nullptr);
    if (arrivals->met) {
        learn(*arrivals->met);
        return;
    }
    for (const MomentPtr& come : arrivals->come) learn(*come);
    self().known.reach(self_, at().op + 1);
    arrivals->met = now();
    now_.reset();
    wake(Event::barrier(gpu(), operation().ids.front()));
}

void Run::take(const Event& event) {
    Come& of = come(event);
    ++taken_of_[event];
    if (of.free > 0) {
        --of.free;
        return;
    }
    const MomentPtr moment = std::move(of.moments.front());
    of.moments.pop_front();
    if (event.kind == Event::Kind::kSemaphore) {
        learn(*moment);
        return;
    }
    observe(*moment);
    signals_[{moment->block, gpu()}].push_back(moment);
}

void Run::happen(const Event& event) {
    if (event.kind == Event::Kind::kSignal || event.kind == Event::Kind::kSemaphore)
        come(event).moments.push_back(now());
    if (event.kind != Event::Kind::kBarrier) wake(event);
}

void Run::wake(const Event& event) {
    const auto found = asleep_.find(event);
    if (found == asleep_.end()) return;
    for (const std::size_t block : found->second) ready_.push_back(block);
    asleep_.erase(found);
}

Status Run::check_all_ended() {
    std::map<std::size_t, Stalled> stalled;
    for (const auto& [event, sleepers] : asleep_)
        for (const std::size_t block : sleepers) {
            const auto& arrivals = blocks_[block].arrivals;
            const std::size_t turns = arrivals ? arrivals->come.size() : taken_of_[event];
            stalled[block] = {blocks_[block].next, event, static_cast<int>(turns)};
        }
    return stalled.empty() ? Status::ok() : explain_stall(plan_, stalled);
}

Status Run::check_all_signalled() const {
    for (std::size_t to = 0; to < written_.size(); ++to)
        for (const auto& [block, all] : written_[to]) {
            if (all.unsignalled.empty()) continue;
            const At& at = all.unsignalled.front().at->at;
            const Moment* const signal = signal_of(static_cast<Rank>(to), block, at.op);
            return Status::unsupported(
                concat(plan_.place_of(signal == nullptr ? at : signal->at),
                       signal == nullptr ? ": writes to gpu " : ": signals its writes to gpu ", to,
                       signal == nullptr ? ", and sends no signal after it"
                                         : ", which does not wait for the signal"));
        }
    return Status::ok();
}

const Moment* Run::signal_of(Rank to, std::size_t block, std::size_t op) const {
    for (const auto& [event, of] : come_)
        if (event.kind == Event::Kind::kSignal && event.gpu == to)
            for (const MomentPtr& moment : of.moments)
                if (op < moment->known[block]) return moment.get();
    return nullptr;
}

Result<Execution> execute(const Plan& plan) { return Run(plan).run(); }

}  // namespace pccl::capsule::mscclpp
