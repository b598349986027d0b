// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/group/group_phases.h"

#include <string>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/sys/socket/route.h"

namespace pccl::comm {
namespace {

/// Returns the management network's device; empty if none is configured.
std::string management_device() {
    const std::string& spec = process_config().management_ifname;
    const auto interfaces = sys::list_interfaces();
    if (spec.empty() || !interfaces.is_ok()) return {};
    const auto chosen = sys::choose_interface(*interfaces, spec);
    return chosen.is_ok() ? chosen->name : std::string();
}

/// Returns "via 10.78.0.2": the address on which a peer's control plane listens for other hosts.
std::string gateway_to(const transport::PeerAddress& peer) {
    for (const std::string& door : peer.control.doors)
        if (const auto address = sys::Address::parse(door); address.is_ok() && address->is_ip())
            return concat(" via ", address->ip_text());
    return {};
}

}  // namespace

bool GroupPhases::share_memory(Rank one, Rank other) const {
    const runtime::PeerDirectory& directory = parts_.peers.directory();
    const transport::PeerAddress& here = directory.endpoint(one).address;
    const transport::PeerAddress& there = directory.endpoint(other).address;
    return may_share_memory(here.control, there.control).is_ok() &&
           here.links.contains(transport::TransportKind::kShm) &&
           there.links.contains(transport::TransportKind::kShm);
}

Status GroupPhases::check_reverse_route(Rank source, bool is_fixed) const {
    const runtime::PeerDirectory& directory = parts_.peers.directory();
    const transport::PeerAddress& peer = directory.endpoint(source).address;
    if (peer.control.host == directory.endpoint(directory.rank()).address.control.host)
        return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const std::string text, peer.first_of(transport::TransportKind::kTcp));
    PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::Address::parse(text));
    const std::string management = management_device();
    const auto device = sys::route_device(address);
    const bool is_astray =
        device.is_ok() && is_fixed && !management.empty() && *device != management;
    if (device.is_ok() && !is_astray) return Status::ok();
    const std::string found = is_astray ? concat("a route to ", address.ip_text(), " by ", *device,
                                                 ", through which no link leads there")
                                        : device.status().message();
    return Status::unavailable(concat(
        "rank ", directory.rank(), " has ", found, ": the one-way link from rank ", source,
        " needs a way back over the management network: ip route replace ", address.ip_text(),
        gateway_to(peer), management.empty() ? "" : concat(" dev ", management)));
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
    parts_.selector->restrict_to(phase.links);
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
    return !parts_.diagnosis.report().switching().published().switch_result.had_all;
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
