// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/events.h"

#include <set>
#include <string>

#include "csrc/base/text/text.h"

namespace pccl::capsule::mscclpp {
namespace {

std::set<PlanEvent> events_to_come(const MscclppPlan& plan,
                                   const std::map<std::size_t, Stalled>& stalled) {
    std::set<PlanEvent> events;
    for (const auto& [number, each] : stalled) {
        const auto& [at, event, turns] = each;
        const ThreadBlock& block = plan.block(at);
        for (std::size_t op = at.op; op < block.size(); ++op) {
            // A thread block that waits at a barrier has already arrived there.
            if (op == at.op && event.kind == PlanEvent::EventType::kBarrier) continue;
            for (const PlanEvent& to_come : events_of(block[op], at.gpu)) events.insert(to_come);
        }
    }
    return events;
}

std::string wait_of(const MscclppPlan& plan, const Stalled& stalled) {
    const PlanEvent& event = stalled.event;
    switch (event.kind) {
        case PlanEvent::EventType::kSignal:
            return concat("waits for signal ", stalled.turns, " of gpu ", event.a);
        case PlanEvent::EventType::kSemaphore:
            return concat("waits for semaphore ", event.a, " of gpu ", event.gpu, " to be free a ",
                          stalled.turns + 1, ". time");
        case PlanEvent::EventType::kBarrier:
            return concat("waits for ", plan.operation(stalled.at).blocks_to_meet,
                          " thread blocks at barrier ", event.a, ", of which ", stalled.turns,
                          " come");
        case PlanEvent::EventType::kPacket:
            return concat("waits for packets in ",
                          to_string(static_cast<schedule::Buffer>(event.a)), " of gpu ", event.gpu);
    }
    return {};
}

}  // namespace

std::vector<PlanEvent> awaited_by(const PlanOperation& operation, Rank gpu) {
    std::vector<PlanEvent> events;
    if (operation.kind == InstructionKind::kWait)
        for (const PlanChannel& channel : operation.channels)
            events.push_back(PlanEvent::signal(gpu, channel.peer, channel));
    if (operation.kind == InstructionKind::kAcquire)
        for (const int id : operation.ids) events.push_back(PlanEvent::semaphore(gpu, id));
    return events;
}

std::vector<PlanEvent> events_of(const PlanOperation& operation, Rank gpu) {
    std::vector<PlanEvent> events;
    if (operation.kind == InstructionKind::kBarrier)
        events.push_back(PlanEvent::barrier(gpu, operation.ids.front()));
    if (operation.kind == InstructionKind::kRelease)
        for (const int id : operation.ids) events.push_back(PlanEvent::semaphore(gpu, id));
    if (operation.kind == InstructionKind::kSignal || operation.signals)
        for (const PlanChannel& channel : operation.channels)
            events.push_back(PlanEvent::signal(channel.peer, gpu, channel));
    for (const Chunks& chunks : operation.dst)
        for (int i = 0; chunks.are_packets && i < chunks.size; ++i)
            events.push_back(PlanEvent::packet(chunks, i));
    return events;
}

Status explain_stall(const MscclppPlan& plan, const std::map<std::size_t, Stalled>& stalled) {
    const std::set<PlanEvent> events = events_to_come(plan, stalled);
    for (const auto& [number, each] : stalled)
        if (!events.contains(each.event))
            return Status::invalid_argument(concat(
                plan.place_of(each.at), ": ", wait_of(plan, each),
                each.event.kind == PlanEvent::EventType::kBarrier ? "" : ", which never comes"));
    const Stalled& first = stalled.begin()->second;
    return Status::invalid_argument(concat(plan.place_of(first.at), ": ", wait_of(plan, first),
                                           ", which waits for this thread block in turn"));
}

}  // namespace pccl::capsule::mscclpp
