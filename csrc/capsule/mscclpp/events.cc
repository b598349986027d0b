// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/events.h"

#include <set>
#include <string>

#include "csrc/base/text/text.h"

namespace pccl::capsule::mscclpp {
namespace {

std::set<Event> events_to_come(const Plan& plan, const std::map<std::size_t, Stalled>& stalled) {
    std::set<Event> events;
    for (const auto& [number, each] : stalled) {
        const auto& [at, event, turns] = each;
        const ThreadBlock& block = plan.block(at);
        for (std::size_t op = at.op; op < block.size(); ++op) {
            // A thread block that waits at a barrier has already arrived there.
            if (op == at.op && event.kind == Event::Kind::kBarrier) continue;
            for (const Event& to_come : events_of(block[op], at.gpu)) events.insert(to_come);
        }
    }
    return events;
}

std::string wait_of(const Plan& plan, const Stalled& stalled) {
    const Event& event = stalled.event;
    switch (event.kind) {
        case Event::Kind::kSignal:
            return concat("waits for signal ", stalled.turns, " of gpu ", event.a);
        case Event::Kind::kSemaphore:
            return concat("waits for semaphore ", event.a, " of gpu ", event.gpu, " to be free a ",
                          stalled.turns + 1, ". time");
        case Event::Kind::kBarrier:
            return concat("waits for ", plan.operation(stalled.at).blocks_to_meet,
                          " thread blocks at barrier ", event.a, ", of which ", stalled.turns,
                          " come");
        case Event::Kind::kPacket:
            return concat("waits for packets in ",
                          to_string(static_cast<schedule::Buffer>(event.a)), " of gpu ", event.gpu);
    }
    return {};
}

}  // namespace

std::vector<Event> awaited_by(const Operation& operation, Rank gpu) {
    std::vector<Event> events;
    if (operation.kind == Kind::kWait)
        for (const Channel& channel : operation.channels)
            events.push_back(Event::signal(gpu, channel.peer, channel));
    if (operation.kind == Kind::kAcquire)
        for (const int id : operation.ids) events.push_back(Event::semaphore(gpu, id));
    return events;
}

std::vector<Event> events_of(const Operation& operation, Rank gpu) {
    std::vector<Event> events;
    if (operation.kind == Kind::kBarrier)
        events.push_back(Event::barrier(gpu, operation.ids.front()));
    if (operation.kind == Kind::kRelease)
        for (const int id : operation.ids) events.push_back(Event::semaphore(gpu, id));
    if (operation.kind == Kind::kSignal || operation.signals)
        for (const Channel& channel : operation.channels)
            events.push_back(Event::signal(channel.peer, gpu, channel));
    for (const Chunks& chunks : operation.dst)
        for (int i = 0; chunks.are_packets && i < chunks.size; ++i)
            events.push_back(Event::packet(chunks, i));
    return events;
}

Status explain_stall(const Plan& plan, const std::map<std::size_t, Stalled>& stalled) {
    const std::set<Event> events = events_to_come(plan, stalled);
    for (const auto& [number, each] : stalled)
        if (!events.contains(each.event))
            return Status::invalid_argument(
                concat(plan.place_of(each.at), ": ", wait_of(plan, each),
                       each.event.kind == Event::Kind::kBarrier ? "" : ", which never comes"));
    const Stalled& first = stalled.begin()->second;
    return Status::invalid_argument(concat(plan.place_of(first.at), ": ", wait_of(plan, first),
                                           ", which waits for this thread block in turn"));
}

}  // namespace pccl::capsule::mscclpp
