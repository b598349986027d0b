// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/session_core.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/sys/host.h"

namespace pccl::p2p {
namespace {

// Limits for a pending setup, and for room on the links of queued messages.
constexpr Duration kShortestDrain = std::chrono::seconds(2);  // since the last progress
constexpr Duration kLongestDrain = std::chrono::seconds(20);  // for slow peers
constexpr Duration kBetweenInterruptLooks = std::chrono::milliseconds(50);
constexpr Duration kLongestSleep = std::chrono::hours(1);
constexpr Duration kBetweenDeadlines = std::chrono::seconds(1);  // of callers without a handshake

/// Returns the error for both sides of connections to an earlier incarnation of `peer`.
Status restarted(const SessionId& peer) {
    return Status::peer_lost(
        kNoRank, concat("session \"", peer.name, "\" was restarted as another incarnation"));
}

}  // namespace

SessionCore::SessionCore(const SessionOptions& options,
                         const std::shared_ptr<runtime::Runtime>& runtime)
    : runtime_(runtime.get()),
      waiter_(runtime->waiter()),
      connect_timeout_(options.connect_timeout),
      lane_budget_(LaneBudget::of_process(options.tcp_sockets > 0 ? options.tcp_sockets
                                                                  : process_config().tcp_sockets)),
      log_(info_.id),
      memory_(lock_, info_.id, inquiries_->catalog()),
      listener_(
          lock_.mutex, *waiter_,
          [this](HandshakeMessage handshake, std::unique_ptr<transport::RecvLink> link) {
              return take_handshake(std::move(handshake), std::move(link));
          },
          [this](const Status& why) { log_.refuse_connection(why); }) {
    info_.id.name = options.name;
}

Result<std::shared_ptr<SessionCore>> SessionCore::create(
    const SessionOptions& options, const std::shared_ptr<runtime::Runtime>& runtime) {
    std::shared_ptr<SessionCore> core(new SessionCore(options, runtime), LeaveToParent());
    PCCL_TRY(core->start(options));
    runtime->register_rank({core->info_.group, kNoRank}, core->info_.secret, core);
    return core;
}

Status SessionCore::start(const SessionOptions& options) {
    PCCL_TRY(sys::fill_random(info_.group));
    PCCL_TRY(sys::fill_random(info_.secret));
    std::memcpy(&info_.id.incarnation, info_.group.data(), sizeof info_.id.incarnation);
    info_.process = {.host = sys::host_name(), .pid = ::getpid()};
    info_.address.control = runtime_->control().address();
    if (!options.transports.empty()) {
        PCCL_ASSIGN_OR_RETURN(allowed_, transport::TransportFlags::parse(options.transports));
    }
    for (const auto& transport : runtime_->transports()) {
        if (!allowed_.has(transport->kind())) continue;
        info_.address.links[transport->kind()] = transport->addresses();
        if (!transport::is_one_sided(transport->kind())) continue;
        PCCL_ASSIGN_OR_RETURN(auto direct, transport->one_sided());
        memory_.allow_direct(transport->kind(), std::move(direct));
    }
    PCCL_ASSIGN_OR_RETURN(info_.probe, memory_.add_probe());
    return Status::ok();
}

ConnectionParts SessionCore::parts_for(const SessionId& peer) {
    return {.session = info_.id.name,
            .waiter = waiter_,
            .inbox = inbox_,
            .receiver = matcher_locked(peer),
            .inquiries = inquiries_,
            .direct = memory_.direct(),
            .by_messages = memory_.by_messages(),
            .tcp = runtime_->find(transport::TransportKind::kTcp),
            .lane_budget = lane_budget_,
            .connect_timeout = connect_timeout_};
}

std::shared_ptr<Matcher> SessionCore::matcher_locked(const SessionId& peer) {
    auto& known = peers_.matcher_of(peer);
    auto matcher = known.lock();
    if (matcher == nullptr) {
        const auto find_connection = [core = weak_from_this()](
                                         const std::shared_ptr<Connection>& through,
                                         const Plan& plan) {
            const auto alive = core.lock();
            return alive == nullptr ? Result(through) : alive->connection_into(through, plan);
        };
        matcher = std::make_shared<Matcher>(peer, waiter_, find_connection);
        known = matcher;
    }
    return matcher;
}

std::shared_ptr<Matcher> SessionCore::matcher_for(const SessionId& peer) {
    const std::lock_guard lock(lock_.mutex);
    return matcher_locked(peer);
}

Status SessionCore::load(const ConnectionInfo& peer) {
    Connections others;
    {
        const std::lock_guard lock(lock_.mutex);
        if (lock_.is_closed) return SessionLock::closed_error();
        peers_.incarnations().load(peer);
        others = peers_.take_others(peer.id);
    }
    displace_connections(others, peer);
    return Status::ok();
}

void SessionCore::displace_connections(const Connections& others, const ConnectionInfo& by) {
    for (const auto& other : others) {
        log_.record(runtime::SessionEventKind::kDisplaced, other->peer().to_string(),
                    concat("by ", by.to_string()));
        other->close(restarted(by.id));
    }
}

Result<SessionId> SessionCore::id_of(const std::string& peer) const {
    const std::lock_guard lock(lock_.mutex);
    PCCL_ASSIGN_OR_RETURN(const ConnectionInfo* const found, peers_.info_of(peer, nullptr));
    return found->id;
}

/// Returns ok where a direct connection reaches both memories.
Status SessionCore::check_reach(const Plan& plan) {
    const ImportedMemory& remote = plan.remote().imported();
    PCCL_TRY(memory_.check_reach(remote.descriptor));
    {
        const std::lock_guard lock(lock_.mutex);
        const auto peer = peers_.info_of(remote.owner.name, &remote.owner);
        const bool has_rdma =
            peer.is_ok() && (*peer)->address.links.contains(transport::TransportKind::kVerbs);
        if (!has_rdma) return Status::ok();
    }
    return memory_.check_rdma(registered(plan.local()).descriptor(), remote.descriptor);
}

Result<ChosenConnection> SessionCore::connection_for(const Plan& plan) {
    PCCL_TRY(memory_.check_own(&plan.local()));
    const ImportedMemory& remote = plan.remote().imported();
    return connection_to(remote.owner.name, &remote.owner, check_reach(plan));
}

/// The peer writes into announced memory: its sends use the connection of the receive.
Result<std::shared_ptr<Connection>> SessionCore::connection_for(const std::string& peer,
                                                                const MessageArgs& args) {
    PCCL_TRY(memory_.check_own(args.memory.get()));
    const bool sends = args.direction == MessageDirection::kSend;
    PCCL_ASSIGN_OR_RETURN(
        ChosenConnection chosen,
        connection_to(
            peer, nullptr,
            sends ? Status::ok() : memory_.check_reach(registered(*args.memory).descriptor())));
    return std::move(chosen.connection);
}

Result<std::shared_ptr<Connection>> SessionCore::connection_into(
    const std::shared_ptr<Connection>& through, const Plan& plan) {
    const Status reached = through->route().is_direct ? check_reach(plan) : Status::ok();
    if (reached.is_ok()) return through;
    const SessionId& incarnation = through->peer().id;
    PCCL_ASSIGN_OR_RETURN(ChosenConnection chosen,
                          connection_to(incarnation.name, &incarnation, reached));
    return std::move(chosen.connection);
}

Result<ChosenConnection> SessionCore::connection_to(const std::string& peer,
                                                    const SessionId* incarnation,
                                                    const Status& reachable) {
    const std::lock_guard lock(lock_.mutex);
    if (lock_.is_closed) return SessionLock::closed_error();
    auto connection = peers_.find_for(peer, reachable);
    PCCL_ASSIGN_OR_RETURN(const ConnectionInfo* const known, peers_.info_of(peer, incarnation));
    if (connection != nullptr) return ChosenConnection{std::move(connection)};
    PCCL_TRY(peers_.check_callable(*known));
    PCCL_ASSIGN_OR_RETURN(auto setup, ConnectionSetup::begin(own_side(), *known, reachable,
                                                             peers_.ended_with(known->id)));
    connection =
        Connection::make(parts_for(known->id), *known, std::move(setup), connect_deadline());
    add_locked(connection);
    return ChosenConnection{std::move(connection), true};
}

void SessionCore::add_locked(const std::shared_ptr<Connection>& connection) {
    peers_.add(connection);
    wake_threads();
}

void SessionCore::wake_threads() {
    is_busy_.store(true);
    runtime_->notify();
    waiter_->wake();
}

Result<std::shared_ptr<TransferRequest>> SessionCore::begin_transfer(TransferArgs args) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const ChosenConnection chosen, connection_for(*args.plan));
        PCCL_TRY(registered(args.plan->local()).begin_use());
        auto request = chosen.connection->begin_transfer(std::move(args));
        // A refusal by a connection that was lost earlier does not count; one by a connection for
        // this call does.
        if (chosen.is_new || !request->was_refused()) return request;
        args = request->args();
    }
}

Status SessionCore::send_message(const std::string& peer, const ControlMessage& message) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const ChosenConnection chosen, connection_to(peer));
        chosen.connection->drain();
        if (!chosen.is_new && !chosen.connection->is_usable()) continue;
        const Status sent = chosen.connection->send_message(message);
        if (sent.is_ok() || chosen.is_new || !chosen.connection->is_lost()) return sent;
    }
}

std::vector<Notification> SessionCore::take_notifications() {
    auto all = inbox_->take_all();
    if (all.size() >= Inbox::kMost) waiter_->wake();  // the others have room now
    return all;
}

Result<std::optional<SessionId>> SessionCore::take_caller(const std::string& peer) {
    const std::lock_guard lock(lock_.mutex);
    if (lock_.is_closed) return SessionLock::closed_error();
    return peers_.take_caller(peer);
}

Status SessionCore::disconnect(const std::string& peer, const Status& reason,
                               const Interrupted& interrupted) {
    Connections gone;
    {
        const std::lock_guard lock(lock_.mutex);
        gone = peers_.all_to(peer);
    }
    const Status sent = drain_and_close(gone, reason, interrupted);
    const std::lock_guard lock(lock_.mutex);
    peers_.remove(gone);
    return sent;
}

Status SessionCore::drain_and_close(const Connections& leaving, const Status& reason,
                                    const Interrupted& interrupted) {
    for (const auto& connection : leaving) connection->stop_posting(reason);
    const Status sent = await_unsent(leaving, interrupted);
    for (const auto& connection : leaving) connection->close(reason);
    return sent;
}

Status SessionCore::await_unsent(const Connections& leaving, const Interrupted& interrupted) {
    const auto has_unsent = [](const auto& connection) { return connection->has_unsent(); };
    const Deadline longest = Deadline::after(kLongestDrain);
    Deadline deadline = longest.within(kShortestDrain);
    Deadline next_look = longest.within(kBetweenInterruptLooks);
    SessionProgressGuard guard(*this);
    transport::Backoff backoff(*waiter_);
    while (std::ranges::any_of(leaving, has_unsent) && !deadline.passed()) {
        if (interrupted && next_look.passed()) {
            PCCL_TRY(interrupted());
            next_look = longest.within(kBetweenInterruptLooks);
        }
        if (guard.progress()) {
            backoff.reset();
            deadline = longest.within(kShortestDrain);
        } else {
            backoff.pause();
        }
    }
    return Status::ok();
}

std::vector<SessionId> SessionCore::peers() const {
    std::vector<SessionId> peers;
    for (const auto& connection : all_connections()) {
        const SessionId& id = connection->peer().id;
        if (is_there(*connection) && std::ranges::find(peers, id) == peers.end())
            peers.push_back(id);
    }
    return peers;
}

bool SessionCore::progress_all() {
    bool moved = listener_.progress();
    for (const auto& connection : all_connections()) {
        moved |= connection->try_progress();
        moved |= connection->receiver().advance();
    }
    return inquiries_->advance() || moved;
}

Duration SessionCore::longest_sleep() const {
    Duration longest = listener_.awaits_handshake() ? kBetweenDeadlines : kLongestSleep;
    for (const auto& connection : all_connections())
        longest = std::min(longest, connection->longest_sleep());
    return longest;
}

bool SessionCore::progress() {
    const bool moved = progress_all();
    drop_lost();
    log_.refuse_requests(memory_.refusals());
    return moved;
}

void SessionCore::drop_lost() {
    Connections lost;  // destroyed after the lock is released
    const std::lock_guard lock(lock_.mutex);
    lost = peers_.take_lost();
    for (const auto& connection : lost)
        log(LogLevel::kInfo, "session \"", info_.id.name, "\": ", connection->why_lost().message());
    peers_.take_lost_arrivals(lost);
}

void SessionCore::look_around(Duration) {
    for (const auto& connection : all_connections()) connection->look();
}

void SessionCore::accept_link(const transport::LinkRequest&,
                              std::unique_ptr<transport::RecvLink> link) {
    const std::lock_guard lock(lock_.mutex);
    if (lock_.is_closed || !listener_.has_room()) {
        link->abort(lock_.is_closed ? SessionLock::closed_error()
                                    : Status::resource_exhausted("too many sessions call"));
        return;
    }
    listener_.add(std::move(link), connect_deadline());
    wake_threads();
}

void SessionCore::fall_short(const Status& why) {
    for (const auto& connection : all_connections()) connection->fall_short(why);
    wake_threads();
}

Status SessionCore::take_handshake(HandshakeMessage handshake,
                                   std::unique_ptr<transport::RecvLink> link) {
    if (const auto* const hello = std::get_if<Hello>(&handshake))
        return take_hello(*hello, std::move(link));
    if (const auto* const greeting = std::get_if<LaneGreeting>(&handshake))
        return take_lane(*greeting, std::move(link));
    return take_welcome(std::get<Welcome>(handshake), std::move(link));
}

Status SessionCore::take_hello(const Hello& hello, std::unique_ptr<transport::RecvLink> link) {
    if (const Status admitted = admit_caller(hello.from); !admitted.is_ok()) {
        link->abort(admitted);
        return admitted.with_context(hello.from.to_string());
    }
    PCCL_ASSIGN_OR_RETURN(auto setup, ConnectionSetup::answer(own_side(), hello, std::move(link)));
    const std::lock_guard lock(lock_.mutex);
    if (lock_.is_closed) return SessionLock::closed_error();
    // A successor may have been loaded meanwhile.
    if (const Status admitted = peers_.incarnations().accept_hello(hello.from); !admitted.is_ok()) {
        setup->give_up(admitted);
        return admitted.with_context(hello.from.to_string());
    }
    peers_.leave_ended(hello);
    const auto connection = Connection::make(parts_for(hello.from.id), hello.from, std::move(setup),
                                             connect_deadline());
    peers_.add_arrival(connection);
    add_locked(connection);
    return Status::ok();
}

Status SessionCore::admit_caller(const ConnectionInfo& caller) {
    Connections others;
    {
        const std::lock_guard lock(lock_.mutex);
        PCCL_TRY(peers_.incarnations().accept_hello(caller));
        others = peers_.take_others(caller.id);
    }
    displace_connections(others, caller);
    return Status::ok();
}

Status SessionCore::take_welcome(const Welcome& welcome,
                                 std::unique_ptr<transport::RecvLink> link) {
    for (const auto& connection : all_connections()) {
        if (!connection->awaits(welcome.number)) continue;
        connection->welcomed(welcome, std::move(link));
        return Status::ok();
    }
    return Status::unavailable("a session answers a call that was given up, or never made");
}

Status SessionCore::take_lane(const LaneGreeting& greeting,
                              std::unique_ptr<transport::RecvLink> link) {
    for (const auto& connection : all_connections()) {
        if (connection->number() != greeting.number || greeting.is_ready) continue;
        connection->greeted(greeting, std::move(link));
        return Status::ok();
    }
    const Status gone = Status::unavailable("a session opens a lane of no connection of this one");
    link->abort(gone);
    return gone;
}

Status SessionCore::close(const Interrupted& interrupted) {
    const Status reason =
        Status::aborted(concat("session \"", info_.id.name, "\" was closed by its program"));
    const Status sent = drain_and_close(all_connections(), reason, interrupted);
    Listener::Callers callers;
    MemoryRegistry::Memories memories;
    {
        const std::lock_guard lock(lock_.mutex);
        if (std::exchange(lock_.is_closed, true)) return sent;
        listener_.take_new(callers);
        memories = memory_.take_all();
    }
    runtime_->unregister_rank({info_.group, kNoRank});
    is_busy_.store(false);
    const std::lock_guard handshaking(listener_.handshake_lock());
    listener_.take_in_handshake(callers);
    for (const Listener::Caller& caller : callers) caller.link->abort(reason);
    for (const auto& connection : all_connections()) connection->close(reason);
    log_.refuse_requests(memory_.refusals());
    // No transfer uses them any more; the peers have received the reason.
    for (const auto& memory : memories) static_cast<void>(memory->deregister());
    const std::lock_guard lock(lock_.mutex);
    peers_.clear();
    return sent;
}

}  // namespace pccl::p2p
