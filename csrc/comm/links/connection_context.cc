// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/links/connection_context.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/collective/fingerprint.h"

namespace pccl::comm {

using schedule::PeerPort;

namespace {

// Shorter than the time that peers allow for a handshake (handshake_server.h).
constexpr Duration kLeft = std::chrono::milliseconds(400);

}  // namespace

ConnectionContext::ConnectionContext(runtime::Runtime& runtime, const runtime::PeerDirectory& peers)
    : runtime_(runtime),
      peers_(peers),
      first_senders_(static_cast<std::size_t>(peers.size()), nullptr),
      first_receivers_(static_cast<std::size_t>(peers.size())) {}

Result<transport::SendLink*> ConnectionContext::send_link(const PeerPort& to) {
    const auto index = static_cast<std::size_t>(to.peer);
    if (to.channel == 0 && first_senders_[index] != nullptr) return first_senders_[index];
    auto found = senders_.find(to);
    if (found == senders_.end()) {
        PCCL_ASSIGN_OR_RETURN(auto link, open(to));
        if (link == nullptr) return nullptr;
        found = senders_.emplace(to, std::move(link)).first;
        if (to.channel == 0) first_senders_[index] = found->second.get();
    }
    return found->second.get();
}

std::vector<Rank> ConnectionContext::unlinked() {
    std::vector<Rank> ranks;
    const std::lock_guard lock(mutex_);
    for (Rank distance = 1; distance < peers_.size(); ++distance) {
        const Rank peer = (peers_.rank() + distance) % peers_.size();
        if (!senders_.contains({peer, 0}) && !receivers_.contains({peer, 0})) ranks.push_back(peer);
    }
    return ranks;
}

std::vector<runtime::PeerPath> ConnectionContext::paths() const {
    std::map<std::pair<Rank, std::string>, sys::PathCounters> by_peer;
    for (const auto& [port, link] : senders_)
        for (const sys::NetworkPath& path : link->paths())
            by_peer[{port.peer, path.interface}] += path.counters;
    std::vector<runtime::PeerPath> paths;
    paths.reserve(by_peer.size());
    for (const auto& [key, counters] : by_peer)
        paths.push_back({.peer = key.first, .interface = key.second, .counters = counters});
    return paths;
}

Status ConnectionContext::look() {
    for (const auto& [port, link] : senders_) PCCL_TRY(link->look());
    const std::lock_guard lock(mutex_);
    for (const auto& [port, link] : receivers_) PCCL_TRY(link->look());
    return Status::ok();
}

Status ConnectionContext::look(Rank peer) {
    for (const auto& [port, link] : senders_)
        if (port.peer == peer) PCCL_TRY(link->look());
    const std::lock_guard lock(mutex_);
    for (const auto& [port, link] : receivers_)
        if (port.peer == peer) PCCL_TRY(link->look());
    return Status::ok();
}

Status ConnectionContext::look_for_failure() {
    const auto failure = [](Rank leaver, const Status& gone) {
        const bool is_reported = gone.code() != StatusCode::kPeerLost || gone.peer() != leaver;
        return is_reported ? gone : Status::ok();
    };
    for (const auto& [port, link] : senders_) PCCL_TRY(failure(port.peer, link->look()));
    const std::lock_guard lock(mutex_);
    for (const auto& [port, link] : receivers_) PCCL_TRY(failure(port.peer, link->look()));
    return Status::ok();
}

Status ConnectionContext::compare_latest(const abi::CollectiveHeader& ours) {
    const std::lock_guard lock(mutex_);
    for (const auto& [port, link] : receivers_) {
        const auto waiting = link->peek(transport::kCollectiveChannel);
        abi::CollectiveHeader theirs{};
        if (!waiting.is_ok() || waiting->size() < sizeof theirs) continue;
        std::memcpy(&theirs, waiting->data(), sizeof theirs);
        // A later collective may just not have been called here.
        if (theirs.sequence != ours.sequence) continue;
        PCCL_TRY(compare(common_part(ours), common_part(theirs),
                         {.self = peers_.rank(), .peer = port.peer}));
    }
    return Status::ok();
}

Result<ConnectionContext::Attempt> ConnectionContext::begin(
    const PeerPort& to, transport::TransportFlags failed) const {
    PCCL_ASSIGN_OR_RETURN(runtime::Runtime::TransportRoute way, peers_.route_to(to.peer, failed));
    transport::LinkRequest request = peers_.request_to(to.peer, to.channel);
    request.generation = generation();
    PCCL_ASSIGN_OR_RETURN(auto pending_connect,
                          way.transport->connect(peers_.endpoint(to.peer).address, request,
                                                 peers_.identity().secret));
    return Attempt{.way = std::move(way),
                   .pending_connect = std::move(pending_connect),
                   .deadline = Deadline::after(process_config().connect_timeout),
                   .looked = system_clock().now(),
                   .failed = failed};
}

bool ConnectionContext::try_next_transport(const PeerPort& to, const Status& failure) {
    const Attempt& attempt = attempts_.at(to);
    const transport::TransportKind kind = attempt.way.transport->kind();
    const bool may_be_remote = failure.code() == StatusCode::kPeerLost ||
                               failure.code() == StatusCode::kUnavailable ||
                               failure.code() == StatusCode::kUnsupported;
    if (!may_be_remote) return false;
    auto next = begin(to, attempt.failed | kind);
    if (!next.is_ok()) return false;
    next->way.reasons += concat("; not over ", to_string(kind), ": ", failure.message());
    next->failure = failure;
    attempts_.at(to) = std::move(*next);
    return true;
}

Result<std::unique_ptr<transport::SendLink>> ConnectionContext::open(const PeerPort& to) {
    if (!attempts_.contains(to)) {
        auto attempt = begin(to);
        PCCL_TRY(attempt.status());
        attempts_.emplace(to, std::move(*attempt));
    }
    reaching_.store(to.peer);
    auto link = go_on(to);
    if (link.is_ok() && *link == nullptr) return link;
    attempts_.erase(to);
    reaching_.store(attempts_.empty() ? kNoRank : attempts_.begin()->first.peer);
    if (!link.is_ok())
        return link.status().with_context(
            concat("rank ", peers_.rank(), " cannot connect to rank ", to.peer));
    return link;
}

Result<std::unique_ptr<transport::SendLink>> ConnectionContext::go_on(const PeerPort& to) {
    Attempt& attempt = attempts_.at(to);
    const TimePoint now = system_clock().now();
    const bool was_left = now - std::exchange(attempt.looked, now) > kLeft;
    auto link = attempt.pending_connect->advance();
    if (!link.is_ok() && was_left) {
        // The peer has closed a connection on which this rank made no progress: the next call
        // starts another.
        attempts_.erase(to);
        return std::unique_ptr<transport::SendLink>();
    }
    if (!link.is_ok()) {
        if (try_next_transport(to, link.status())) return std::unique_ptr<transport::SendLink>();
        // If no transport reaches the peer, the error of the fastest one is returned, as without
        // fallbacks.
        return attempt.failure.is_ok() ? link.status() : attempt.failure;
    }
    if (*link == nullptr && attempt.deadline.passed())
        return attempt.pending_connect->timeout_error();
    if (*link != nullptr)
        log(attempt.failure.is_ok() ? LogLevel::kInfo : LogLevel::kWarning, "group ",
            peers_.group_name(), ": rank ", peers_.rank(), " sends to rank ", to.peer, " over ",
            to_string(attempt.way.transport->kind()), attempt.way.reasons);
    return link;
}

transport::RecvLink* ConnectionContext::receive_link(const PeerPort& from) {
    if (from.channel == 0)
        return first_receivers_[static_cast<std::size_t>(from.peer)].load(
            std::memory_order_acquire);
    const std::lock_guard lock(mutex_);
    const auto found = receivers_.find(from);
    return found == receivers_.end() ? nullptr : found->second.get();
}

Status ConnectionContext::belongs(const transport::LinkRequest& request) const {
    const auto refuse = [&](const auto&... why) {
        return Status::invalid_argument(concat("a link from rank ", request.source, " to rank ",
                                               request.destination, why..., " in group ",
                                               peers_.group_name()));
    };
    if (request.destination != peers_.rank() || request.source < 0 ||
        request.source >= peers_.size())
        return refuse(" does not belong to rank ", peers_.rank(), " of ", peers_.size());
    if (request.generation < generation())
        return refuse(" is of generation ", request.generation, ", not ", generation());
    return Status::ok();
}

void ConnectionContext::accepted(const transport::LinkRequest& request,
                                 std::unique_ptr<transport::RecvLink> link) {
    if (const Status own = belongs(request); !own.is_ok())
        return runtime_.refused(to_string(link->kind()), own);
    const std::lock_guard lock(mutex_);
    if (!closed_.is_ok()) return link->abort(closed_);
    const PeerPort from{request.source, request.channel};
    if (request.generation > generation())
        early_[from] = {request.generation, std::move(link)};
    else
        store_link(from, std::move(link));
}

void ConnectionContext::store_link(const PeerPort& from,
                                   std::unique_ptr<transport::RecvLink> link) {
    auto& slot = receivers_[from];
    if (slot != nullptr) retired_.push_back(std::move(slot));
    slot = std::move(link);
    if (from.channel == 0)
        first_receivers_[static_cast<std::size_t>(from.peer)].store(slot.get(),
                                                                    std::memory_order_release);
    arrivals_.fetch_add(1, std::memory_order_release);
}

void ConnectionContext::renew(std::uint32_t generation) {
    release_network_links();
    const std::lock_guard lock(mutex_);
    generation_.store(generation);
    for (auto& [port, early] : early_)
        if (early.generation == generation) store_link(port, std::move(early.link));
    std::erase_if(early_, [](const auto& each) { return each.second.link == nullptr; });
}

void ConnectionContext::release_network_links() {
    const Status why = Status::aborted("the network's phase was switched");
    const auto is_over_network = [&](auto& each) {
        if (each.second->kind() == transport::TransportKind::kShm) return false;
        each.second->abort(why);
        return true;
    };
    attempts_.clear();
    reaching_.store(kNoRank);
    std::erase_if(senders_, is_over_network);
    std::fill(first_senders_.begin(), first_senders_.end(), nullptr);
    for (const auto& [port, link] : senders_)
        if (port.channel == 0) first_senders_[static_cast<std::size_t>(port.peer)] = link.get();
    const std::lock_guard lock(mutex_);
    std::erase_if(receivers_, is_over_network);
    for (auto& first : first_receivers_) first.store(nullptr);
    for (const auto& [port, link] : receivers_)
        if (port.channel == 0)
            first_receivers_[static_cast<std::size_t>(port.peer)].store(link.get());
    retired_.clear();
}

void ConnectionContext::close(const Status& reason) {
    attempts_.clear();
    for (const auto& [port, link] : senders_) link->abort(reason);
    senders_.clear();
    std::fill(first_senders_.begin(), first_senders_.end(), nullptr);
    const std::lock_guard lock(mutex_);
    closed_ = reason;
    for (const auto& [port, link] : receivers_) link->abort(reason);
    for (auto& first : first_receivers_) first.store(nullptr);
    receivers_.clear();
    retired_.clear();
    early_.clear();
}

}  // namespace pccl::comm
