// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/group_phases.h"

#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::comm {

bool GroupPhases::share_memory(Rank one, Rank other) const {
    const runtime::PeerDirectory& directory = parts_.peers.directory();
    const transport::PeerAddress& here = directory.endpoint(one).address;
    const transport::PeerAddress& there = directory.endpoint(other).address;
    return may_share_memory(here.control, there.control).is_ok() &&
           here.links.contains(transport::TransportKind::kShm) &&
           there.links.contains(transport::TransportKind::kShm);
}

void GroupPhases::hold() {
    const std::lock_guard lock(parts_.group.mutex());
    is_on_hold_ = true;
}

void GroupPhases::release() {
    {
        const std::lock_guard lock(parts_.group.mutex());
        is_on_hold_ = false;
    }
    parts_.waiter.wake();
}

Status GroupPhases::wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds longest) {
    const Deadline last = Deadline::after(longest).unless(parts_.group.aborted());
    transport::Backoff backoff(parts_.waiter);
    while (is_on_hold_ && !parts_.group.is_over()) {
        lock.unlock();
        backoff.pause();
        const Status interrupted = parts_.group.check_interrupt();
        lock.lock();
        PCCL_TRY(interrupted);
        if (is_on_hold_ && last.passed())
            return Status::timeout(
                concat("group ", name(), " is still switching to another phase of the network"));
    }
    return Status::ok();
}

Result<bool> GroupPhases::drain() {
    parts_.group.progress();
    const std::lock_guard lock(parts_.group.mutex());
    if (parts_.group.is_over()) return parts_.group.ended().shown;
    return parts_.collectives.is_empty() && parts_.mailbox.is_idle();
}

std::string GroupPhases::under_way() const {
    const std::lock_guard lock(parts_.group.mutex());
    return parts_.collectives.is_empty() ? parts_.mailbox.describe_first()
                                         : parts_.collectives.front().describe();
}

Switching::GroupProgress GroupPhases::progress() const {
    std::uint64_t identity = 0;
    for (const std::uint8_t byte : parts_.peers.directory().identity().group)
        identity = identity << 7U ^ byte;
    const std::lock_guard lock(parts_.group.mutex());
    return {.group = identity,
            .ranks = static_cast<std::uint32_t>(size()),
            .collectives = parts_.collectives.sequence(),
            .sent = parts_.mailbox.counts().sent,
            .received = parts_.mailbox.counts().received};
}

void GroupPhases::enter(GroupPhase phase) {
    const std::lock_guard lock(parts_.group.mutex());
    if (parts_.group.is_over()) return;
    if (phase.generation != phase_.generation) parts_.peers.renew(phase.generation);
    parts_.collectives.set_generation(phase.generation);
    parts_.selector->follow(phase.links);
    phase_ = std::move(phase);
}

void GroupPhases::note_ended_switch(const Status& why) {
    const std::lock_guard lock(parts_.group.mutex());
    disagreement_ = {.why = why.code() == StatusCode::kMismatch ? why : Status::ok(),
                     .collectives = parts_.collectives.sequence()};
}

Status GroupPhases::disagreement() const {
    const bool is_last = disagreement_.collectives == parts_.collectives.sequence();
    return is_last ? disagreement_.why : Status::ok();
}

bool GroupPhases::is_disagreement_news() const {
    return !parts_.diagnosis.report().switching().told().switch_result.had_all;
}

Status GroupPhases::check_link(const MessageOperation::Envelope& envelope) const {
    if (phase_.links == nullptr || envelope.peer < 0 || envelope.peer == rank())
        return Status::ok();
    const bool sends = envelope.direction == MessageOperation::Direction::kSend;
    const Rank from = sends ? rank() : envelope.peer;
    const Rank to = sends ? envelope.peer : rank();
    if (phase_.links->has(from, to)) return Status::ok();
    return Status::unsupported(concat("phase ", phase_.name,
                                      " of the network has no link from rank ", from, " to rank ",
                                      to, " of group ", name()));
}

}  // namespace pccl::comm
