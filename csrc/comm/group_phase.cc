// A group whose network is switched between phases: on hold meanwhile, then with other links.
#include <utility>

#include "csrc/base/text.h"
#include "csrc/comm/group.h"

namespace pccl::comm {

bool Group::share_memory(Rank one, Rank other) const {
    const transport::PeerAddress& here = directory().endpoint(one).address;
    const transport::PeerAddress& there = directory().endpoint(other).address;
    return here.control.host == there.control.host &&
           here.links.contains(transport::TransportKind::kShm) &&
           there.links.contains(transport::TransportKind::kShm);
}

void Group::hold() {
    const std::lock_guard lock(mutex_);
    is_on_hold_ = true;
}

void Group::release() {
    {
        const std::lock_guard lock(mutex_);
        is_on_hold_ = false;
    }
    waiter_->wake();
}

Status Group::await_release(std::unique_lock<std::mutex>& lock, OptionalTimeout timeout) {
    if (!is_on_hold_) return Status::ok();
    const Deadline last = deadline(system_clock().now(), timeout);
    transport::Backoff backoff(*waiter_);
    while (is_on_hold_ && !is_over()) {
        lock.unlock();
        backoff.pause();
        const Status interrupted = check_interrupt();
        lock.lock();
        PCCL_TRY(interrupted);
        if (is_on_hold_ && last.passed())
            return Status::timeout(
                concat("group ", name(), " is still switching to another phase of the network"));
    }
    return Status::ok();
}

Result<bool> Group::drain() {
    advance();
    const std::lock_guard lock(mutex_);
    if (is_over()) return end_.shown;
    return collectives_.is_empty() && mailbox_.is_idle();
}

std::string Group::under_way() const {
    const std::lock_guard lock(mutex_);
    return collectives_.is_empty() ? mailbox_.describe_first() : collectives_.front().describe();
}

Switching::Progress Group::progress() const {
    std::uint64_t identity = 0;
    for (const std::uint8_t byte : directory().identity().group) identity = identity << 7U ^ byte;
    const std::lock_guard lock(mutex_);
    return {.group = identity,
            .ranks = static_cast<std::uint32_t>(size()),
            .collectives = sequence(),
            .sent = mailbox_.counts().sent,
            .received = mailbox_.counts().received};
}

void Group::enter(GroupPhase phase) {
    const std::lock_guard lock(mutex_);
    if (is_over()) return;
    if (phase.generation != phase_.generation) peers_.renew(phase.generation);
    collectives_.set_generation(phase.generation);
    selector_->follow(phase.links);
    phase_ = std::move(phase);
}

Status Group::check_link(const MessageOperation::Envelope& envelope) const {
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
