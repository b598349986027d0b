// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session_core.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/hmac.h"
#include "csrc/sys/host.h"
#include "csrc/sys/memory_left.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::p2p {
namespace {

constexpr std::size_t kMostCallers = 1024;
constexpr std::size_t kMostReachabilities = 4096;
// Limits for a pending setup, and for room on the links of queued messages.
constexpr Duration kShortestDrain = std::chrono::seconds(2);  // since the last progress
constexpr Duration kLongestDrain = std::chrono::seconds(20);  // for slow peers
constexpr Duration kBetweenInterruptLooks = std::chrono::milliseconds(50);
constexpr Duration kLongestSleep = std::chrono::hours(1);
constexpr Duration kBetweenDeadlines = std::chrono::seconds(1);  // of callers without a handshake

Status closed() { return Status::aborted("this session is closed"); }

/// Returns the error for both sides of connections to an earlier incarnation of `peer`.
Status restarted(const SessionId& peer) {
    return Status::peer_lost(
        kNoRank, concat("session \"", peer.name, "\" has come back as another incarnation"));
}

/// Returns the error for a peer that was not loaded here.
Status has_gone(const ConnectionInfo& peer) {
    return Status::peer_lost(kNoRank,
                             concat(peer.to_string(), ": its connection has ended, and it was not ",
                                    "loaded here: load its connection info, or let it call again"))
        .with_process(peer.process);
}

Status unknown(const std::string& peer) {
    return Status::invalid_argument(concat("no session \"", peer.substr(0, SessionId::kLongestName),
                                           "\" is known here: load its connection info first"));
}

}  // namespace

SessionCore::SessionCore(const SessionOptions& options,
                         const std::shared_ptr<runtime::Runtime>& runtime)
    : runtime_(runtime.get()),
      waiter_(runtime->waiter()),
      connect_timeout_(options.connect_timeout) {
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
        if (transport->kind() != transport::TransportKind::kShm) continue;
        PCCL_ASSIGN_OR_RETURN(direct_, transport->one_sided());
    }
    PCCL_ASSIGN_OR_RETURN(
        probe_, add({.data = reinterpret_cast<std::byte*>(&probed_), .bytes = sizeof probed_}, {}));
    info_.probe = probe_->descriptor();
    return Status::ok();
}

OwnSide SessionCore::own_side() const { return {*runtime_, info_, allowed_}; }

ConnectionParts SessionCore::parts_for(const SessionId& peer) {
    return {info_.id.name, waiter_, inbox_,      matcher_locked(peer),
            inquiries_,    direct_, by_messages_};
}

std::shared_ptr<Matcher> SessionCore::matcher_locked(const SessionId& peer) {
    std::erase_if(matchers_, [](const auto& each) { return each.second.expired(); });
    auto& known = matchers_[{peer.name, peer.incarnation}];
    auto matcher = known.lock();
    if (matcher == nullptr) {
        const auto find_connection = [core = weak_from_this()](
                                         const std::shared_ptr<Connection>& through,
                                         const abi::MemoryDescriptor& memory) {
            const auto alive = core.lock();
            return alive == nullptr ? Result(through) : alive->connection_into(through, memory);
        };
        matcher = std::make_shared<Matcher>(peer, waiter_, find_connection);
        known = matcher;
    }
    return matcher;
}

std::shared_ptr<Matcher> SessionCore::matcher_for(const SessionId& peer) {
    const std::lock_guard lock(mutex_);
    return matcher_locked(peer);
}

Result<transport::MemoryIdentity> SessionCore::identity_for_memory() {
    PCCL_ASSIGN_OR_RETURN(auto identity, transport::fresh_identity());
    identity.id = mark_of(info_.id.incarnation) | registrations_.fetch_add(1);
    return identity;
}

Result<std::shared_ptr<RegisteredMemory>> SessionCore::add(const transport::Memory& memory,
                                                           std::shared_ptr<const void> owner) {
    PCCL_ASSIGN_OR_RETURN(const auto identity, identity_for_memory());
    std::vector<std::unique_ptr<transport::Registration>> registrations;
    for (transport::RmaTransport* const transport :
         {static_cast<transport::RmaTransport*>(by_messages_.get()), direct_.get()}) {
        if (transport == nullptr) continue;
        PCCL_ASSIGN_OR_RETURN(auto registration, transport->add(memory, identity));
        registrations.push_back(std::move(registration));
    }
    auto added =
        std::make_shared<RegisteredMemory>(memory, std::move(owner), std::move(registrations));
    PCCL_TRY(remember(added));
    return added;
}

Status SessionCore::remember(const std::shared_ptr<RegisteredMemory>& memory) {
    const std::lock_guard lock(mutex_);
    if (closed_) return closed();
    memories_.insert(memory);
    return Status::ok();
}

std::uint64_t SessionCore::untouched_bytes() const {
    std::uint64_t untouched = 0;
    const std::lock_guard lock(mutex_);
    for (const auto& each : memories_) {
        const transport::Memory& memory = each->memory();
        if (memory.file < 0) continue;
        untouched += memory.bytes - std::min(memory.bytes, transport::bytes_taken(memory.file));
    }
    return untouched;
}

Status SessionCore::check_room(std::size_t bytes) const {
    const auto left = sys::memory_left();
    if (!left.is_ok()) return Status::ok();  // the kernel's own check decides
    if (bytes <= left->bytes && untouched_bytes() <= left->bytes - bytes) return Status::ok();
    return Status::resource_exhausted(
        concat("cannot allocate ", bytes, " bytes: ", left->bytes, " can be had (", left->bound,
               "), of which this session has been given ", untouched_bytes(), " already"));
}

Result<std::shared_ptr<RegisteredMemory>> SessionCore::allocate(std::size_t bytes) {
    PCCL_TRY(check_room(bytes));
    PCCL_ASSIGN_OR_RETURN(auto mapping, transport::Mapping::shareable("p2p", bytes));
    auto owner = std::make_shared<transport::Mapping>(std::move(mapping));
    const auto memory = owner->memory();
    const int file = owner->file();
    return add({.data = memory.data(), .bytes = bytes, .file = file}, std::move(owner));
}

Status SessionCore::check_own(const LocalMemory* memory) const {
    if (memory != nullptr &&
        mark_of(registered(*memory).descriptor().id) == mark_of(info_.id.incarnation))
        return Status::ok();
    return Status::invalid_argument(concat("the memory is registered with another session than \"",
                                           info_.id.name, "\": register it with this one"));
}

Status SessionCore::end(const std::shared_ptr<LocalMemory>& memory) {
    PCCL_TRY(check_own(memory.get()));
    const auto ended = std::static_pointer_cast<RegisteredMemory>(memory);
    PCCL_TRY(ended->deregister());
    const std::lock_guard lock(mutex_);
    memories_.erase(ended);
    inquiries_->catalog().forget(ended->descriptor());
    return Status::ok();
}

Status SessionCore::publish(const std::string& name, const std::shared_ptr<LocalMemory>& memory) {
    PCCL_TRY(check_own(memory.get()));
    const std::lock_guard lock(mutex_);  // excludes the session's end meanwhile
    if (closed_) return closed();
    const auto published = std::static_pointer_cast<RegisteredMemory>(memory);
    if (!memories_.contains(published))
        return Status::invalid_argument("the memory is not registered with this session any more");
    return inquiries_->catalog().publish(name, published->descriptor());
}

Status SessionCore::load(const ConnectionInfo& peer) {
    Connections others;
    {
        const std::lock_guard lock(mutex_);
        if (closed_) return closed();
        incarnations_.load(peer);
        others = take_others(peer.id);
    }
    displace(others, peer);
    return Status::ok();
}

void SessionCore::displace(const Connections& others, const ConnectionInfo& by) {
    for (const auto& other : others) {
        record(runtime::SessionEventKind::kDisplaced, other->peer().to_string(),
               concat("by ", by.to_string()));
        other->close(restarted(by.id));
    }
}

void SessionCore::record(runtime::SessionEventKind kind, std::string peer, std::string text) const {
    runtime::session_recorder().add_event({.at = system_clock().now(),
                                           .kind = kind,
                                           .session = info_.id.name,
                                           .peer = std::move(peer),
                                           .text = std::move(text)});
}

Result<SessionId> SessionCore::known(const std::string& peer) const {
    const std::lock_guard lock(mutex_);
    const ConnectionInfo* const found = incarnations_.find(peer);
    return found == nullptr ? Result<SessionId>(unknown(peer)) : found->id;
}

Status SessionCore::check_reach(const abi::MemoryDescriptor& memory) {
    if (memory.kind == abi::MemoryKind::kHost || direct_ == nullptr) return Status::ok();
    if (!transport::shm::key_on_this_host(memory).is_ok()) return Status::ok();  // reads a file
    const std::pair name{memory.id, memory.nonce};
    {
        const std::lock_guard lock(mutex_);
        const auto known = reachability_.find(name);
        if (known != reachability_.end()) return known->second;
    }
    Status found = direct_->reaches(memory);
    // The copying side reports memory that has ended.
    if (found.code() == StatusCode::kUnavailable) return Status::ok();
    const std::lock_guard lock(mutex_);
    if (reachability_.size() >= kMostReachabilities) reachability_.clear();
    reachability_.emplace(name, found);
    return found;
}

Result<ChosenConnection> SessionCore::connection_for(const Plan& plan) {
    PCCL_TRY(check_own(&plan.local()));
    const ImportedMemory& remote = plan.remote().imported();
    return connection_to(remote.owner.name, &remote.owner, check_reach(remote.descriptor));
}

/// The peer writes into announced memory: its sends use the connection of the receive.
Result<std::shared_ptr<Connection>> SessionCore::connection_for(const std::string& peer,
                                                                const MessageArgs& args) {
    PCCL_TRY(check_own(args.memory.get()));
    const bool sends = args.direction == Direction::kSend;
    PCCL_ASSIGN_OR_RETURN(
        ChosenConnection chosen,
        connection_to(peer, nullptr,
                      sends ? Status::ok() : check_reach(registered(*args.memory).descriptor())));
    return std::move(chosen.connection);
}

Result<std::shared_ptr<Connection>> SessionCore::connection_into(
    const std::shared_ptr<Connection>& through, const abi::MemoryDescriptor& memory) {
    const Status reached = through->route().is_direct ? check_reach(memory) : Status::ok();
    if (reached.is_ok()) return through;
    const SessionId& incarnation = through->peer().id;
    PCCL_ASSIGN_OR_RETURN(ChosenConnection chosen,
                          connection_to(incarnation.name, &incarnation, reached));
    return std::move(chosen.connection);
}

Result<ChosenConnection> SessionCore::connection_to(const std::string& peer,
                                                    const SessionId* incarnation,
                                                    const Status& reachable) {
    const std::lock_guard lock(mutex_);
    if (closed_) return closed();
    auto connection = find(peer, false);
    const bool goes_by_messages =
        connection != nullptr && connection->is_whole() && !connection->route().is_direct;
    if (!reachable.is_ok() && !goes_by_messages) connection = find(peer, true);
    const ConnectionInfo* const known = incarnations_.find(peer);
    if (known == nullptr) return unknown(peer);
    if (incarnation != nullptr && known->id != *incarnation)
        return Status::unavailable(concat(
            "session \"", peer, "\" has come back as another incarnation since its memory was ",
            "imported: import what it has now"));
    if (connection != nullptr) return ChosenConnection{std::move(connection)};
    if (incarnations_.cannot_be_called(peer)) return has_gone(*known);
    PCCL_ASSIGN_OR_RETURN(
        auto setup, ConnectionSetup::call(own_side(), *known, reachable, ended_with(known->id)));
    connection =
        Connection::make(parts_for(known->id), *known, std::move(setup), connect_deadline());
    add_locked(connection);
    return ChosenConnection{std::move(connection), true};
}

std::vector<std::uint64_t> SessionCore::ended_with(const SessionId& peer) {
    const auto [first, last] = connections_.equal_range(peer.name);
    for (auto each = first; each != last; ++each)
        if (!each->second->is_usable()) ended_.add(peer, each->second->number());
    return ended_.with(peer);
}

void SessionCore::leave_ended(const Hello& hello) {
    const auto [first, last] = connections_.equal_range(hello.from.id.name);
    for (auto each = first; each != last; ++each)
        if (std::ranges::find(hello.ended, each->second->number()) != hello.ended.end())
            each->second->leave();
}

std::shared_ptr<Connection> SessionCore::find(const std::string& peer, bool is_fallback) const {
    const auto [first, last] = connections_.equal_range(peer);
    const auto alive = std::find_if(first, last, [is_fallback](const auto& each) {
        return each.second->is_usable() && each.second->is_fallback() == is_fallback;
    });
    return alive == last ? nullptr : alive->second;
}

void SessionCore::add_locked(const std::shared_ptr<Connection>& connection) {
    const std::string& peer = connection->peer().id.name;
    incarnations_.wake(peer);
    connections_.emplace(peer, connection);
    is_busy_.store(true);
    runtime_->notify();
    waiter_->wake();
}

void SessionCore::let_rest(const Connections& gone) {
    for (const auto& connection : gone) {
        const std::string& peer = connection->peer().id.name;
        if (connections_.contains(peer)) continue;
        if (const auto forgotten = incarnations_.rest(peer)) ended_.forget(*forgotten);
    }
}

SessionCore::Connections SessionCore::take_others(const SessionId& incarnation) {
    Connections others;
    const auto [first, last] = connections_.equal_range(incarnation.name);
    for (auto each = first; each != last;) {
        if (each->second->peer().id == incarnation) {
            ++each;
            continue;
        }
        others.push_back(each->second);
        each = connections_.erase(each);
    }
    return others;
}

SessionCore::Connections SessionCore::all_connections() const {
    Connections all;
    const std::lock_guard lock(mutex_);
    all.reserve(connections_.size());
    for (const auto& [name, connection] : connections_) all.push_back(connection);
    return all;
}

Result<std::shared_ptr<TransferRequest>> SessionCore::begin(TransferArgs args) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const ChosenConnection chosen, connection_for(*args.plan));
        PCCL_TRY(registered(args.plan->local()).begin_use());
        auto request = chosen.connection->begin(std::move(args));
        // A refusal by a connection that was lost earlier does not count; one by a connection for
        // this call does.
        if (chosen.is_new || !request->was_refused()) return request;
        args = request->args();
    }
}

Status SessionCore::send(const std::string& peer, const ControlMessage& message) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const ChosenConnection chosen, connection_to(peer));
        chosen.connection->drain();
        if (!chosen.is_new && !chosen.connection->is_usable()) continue;
        const Status sent = chosen.connection->send(message);
        if (sent.is_ok() || chosen.is_new || !chosen.connection->is_lost()) return sent;
    }
}

std::vector<Notification> SessionCore::take_notifications() {
    auto all = inbox_->take_all();
    if (all.size() >= Inbox::kMost) waiter_->wake();  // the others have room now
    return all;
}

Result<std::optional<SessionId>> SessionCore::take_caller(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    if (closed_) return closed();
    const auto connection = peer.empty() ? first_unreported() : first_whole(peer);
    if (connection == nullptr) return std::optional<SessionId>();
    const SessionId& caller = connection->peer().id;
    for (Arrival& each : arrived_) each.is_reported |= each.who() == caller;
    return std::optional(caller);
}

std::shared_ptr<Connection> SessionCore::first_unreported() const {
    // A peer that has reconnected before the loss of its last connection was found is reported
    // after that.
    const auto is_known = [this](const SessionId& who) {
        return std::ranges::any_of(arrived_, [&who](const Arrival& each) {
            return each.is_reported && each.who() == who && each.is_there();
        });
    };
    for (const Arrival& each : arrived_)
        if (!each.is_reported && each.is_there() && !is_known(each.who())) return each.connection;
    return nullptr;
}

std::shared_ptr<Connection> SessionCore::first_whole(const std::string& peer) const {
    const auto [first, last] = connections_.equal_range(peer);
    const auto found =
        std::find_if(first, last, [](const auto& each) { return is_there(*each.second); });
    return found == last ? nullptr : found->second;
}

Status SessionCore::disconnect(const std::string& peer, const Status& reason,
                               const Interrupted& interrupted) {
    Connections gone;
    {
        const std::lock_guard lock(mutex_);
        const auto [first, last] = connections_.equal_range(peer);
        for (auto each = first; each != last; ++each) gone.push_back(each->second);
    }
    const Status sent = drain_and_close(gone, reason, interrupted);
    const std::lock_guard lock(mutex_);
    for (const auto& connection : gone) ended_.add(connection->peer().id, connection->number());
    std::erase_if(connections_, [&gone](const auto& each) {
        return std::ranges::find(gone, each.second) != gone.end();
    });
    let_rest(gone);
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
    bool moved = progress_handshakes();
    for (const auto& connection : all_connections()) {
        moved |= connection->try_progress();
        moved |= connection->receiver().advance();
    }
    return inquiries_->advance() || moved;
}

Duration SessionCore::longest_sleep() const {
    Duration longest = awaits_handshake_.load() ? kBetweenDeadlines : kLongestSleep;
    for (const auto& connection : all_connections())
        longest = std::min(longest, connection->longest_sleep());
    return longest;
}

bool SessionCore::progress() {
    const bool moved = progress_all();
    drop_lost();
    log_refusals();
    return moved;
}

void SessionCore::log_refusals() {
    const std::uint64_t all = refusals();
    const std::uint64_t logged = logged_refusals_.exchange(all);
    if (all <= logged) return;
    const std::string what =
        concat(all - logged, " requests for memory that is not registered with it, or beyond it");
    record(runtime::SessionEventKind::kRefused, {}, what);
    refusals_.line(LogLevel::kWarning, info_.id.name, "session \"", info_.id.name, "\" refused ",
                   what);
}

void SessionCore::drop_lost() {
    Connections lost;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    for (auto each = connections_.begin(); each != connections_.end();) {
        if (!each->second->is_lost()) {
            ++each;
            continue;
        }
        log(LogLevel::kInfo, "session \"", info_.id.name,
            "\": ", each->second->why_lost().message());
        ended_.add(each->second->peer().id, each->second->number());
        lost.push_back(each->second);
        each = connections_.erase(each);
    }
    let_rest(lost);
    arrived_.remove_if([&lost](const Arrival& each) {
        const bool is_lost = each.connection->is_lost();
        if (is_lost) lost.push_back(each.connection);
        return is_lost;
    });
}

void SessionCore::look_around(Duration) { look_at_all(); }

void SessionCore::look_at_all() {
    for (const auto& connection : all_connections()) connection->look();
}

void SessionCore::accept_link(const transport::LinkRequest&,
                              std::unique_ptr<transport::RecvLink> link) {
    const std::lock_guard lock(mutex_);
    if (closed_ || callers_.size() >= kMostCallers) {
        link->abort(closed_ ? closed() : Status::resource_exhausted("too many sessions call"));
        return;
    }
    callers_.push_back({std::move(link), {}, connect_deadline()});
    is_busy_.store(true);
    runtime_->notify();
    waiter_->wake();
}

void SessionCore::accept_region(const transport::LinkRequest&, std::unique_ptr<transport::Region>) {
    refuse(Status::unsupported("sessions share no regions"));
}

bool SessionCore::progress_handshakes() {
    const std::unique_lock handshaking(handshake_lock_, std::try_to_lock);
    if (!handshaking.owns_lock()) return false;
    {
        const std::lock_guard lock(mutex_);
        in_handshake_.splice(in_handshake_.end(), callers_);
    }
    const std::size_t before = in_handshake_.size();
    in_handshake_.remove_if([this](Caller& caller) { return !progress_handshake(caller); });
    awaits_handshake_.store(!in_handshake_.empty());
    return in_handshake_.size() != before;
}

bool SessionCore::progress_handshake(Caller& caller) {
    auto handshake = caller.reader.next(*caller.link);
    if (handshake.is_ok() && !*handshake) {
        if (!caller.deadline.passed()) return true;
        handshake = Status::timeout("a session connects, and sends no handshake in time");
    }
    Status status = handshake.status();
    if (status.is_ok())
        status = take(std::move(**handshake), std::move(caller.link));
    else
        caller.link->abort(status);
    if (!status.is_ok()) refuse(status);
    return false;
}

Status SessionCore::take(HandshakeMessage handshake, std::unique_ptr<transport::RecvLink> link) {
    if (const auto* const hello = std::get_if<Hello>(&handshake))
        return take_hello(*hello, std::move(link));
    return take_welcome(std::get<Welcome>(handshake), std::move(link));
}

Status SessionCore::take_hello(const Hello& hello, std::unique_ptr<transport::RecvLink> link) {
    if (const Status admitted = admit(hello.from); !admitted.is_ok()) {
        link->abort(admitted);
        return admitted.with_context(hello.from.to_string());
    }
    PCCL_ASSIGN_OR_RETURN(auto setup, ConnectionSetup::answer(own_side(), hello, std::move(link)));
    const std::lock_guard lock(mutex_);
    if (closed_) return closed();
    // A successor may have been loaded meanwhile.
    if (const Status admitted = incarnations_.accept_hello(hello.from); !admitted.is_ok()) {
        setup->give_up(admitted);
        return admitted.with_context(hello.from.to_string());
    }
    leave_ended(hello);
    const auto connection = Connection::make(parts_for(hello.from.id), hello.from, std::move(setup),
                                             connect_deadline());
    arrived_.push_back({connection});
    add_locked(connection);
    return Status::ok();
}

Status SessionCore::admit(const ConnectionInfo& caller) {
    Connections others;
    {
        const std::lock_guard lock(mutex_);
        PCCL_TRY(incarnations_.accept_hello(caller));
        others = take_others(caller.id);
    }
    displace(others, caller);
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

void SessionCore::refuse(const Status& why) {
    record(runtime::SessionEventKind::kRefused, {}, concat("a connection: ", why.message()));
    refusals_.line(LogLevel::kWarning, info_.id.name, "session \"", info_.id.name,
                   "\" refused a connection: ", why.message());
}

Status SessionCore::close(const Interrupted& interrupted) {
    const Status reason =
        Status::aborted(concat("session \"", info_.id.name, "\" was closed by its program"));
    const Status sent = drain_and_close(all_connections(), reason, interrupted);
    std::list<Caller> callers;
    std::set<std::shared_ptr<RegisteredMemory>> memories;
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(closed_, true)) return sent;
        callers.splice(callers.end(), callers_);
        memories.swap(memories_);
    }
    runtime_->unregister_rank({info_.group, kNoRank});
    is_busy_.store(false);
    const std::lock_guard handshaking(handshake_lock_);
    callers.splice(callers.end(), in_handshake_);
    for (const Caller& caller : callers) caller.link->abort(reason);
    for (const auto& connection : all_connections()) connection->close(reason);
    log_refusals();
    // No transfer uses them any more; the peers have received the reason.
    for (const auto& memory : memories) static_cast<void>(memory->deregister());
    const std::lock_guard lock(mutex_);
    connections_.clear();
    arrived_.clear();
    return sent;
}

}  // namespace pccl::p2p
