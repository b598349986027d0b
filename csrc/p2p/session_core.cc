#include "csrc/p2p/session_core.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/crypto/hmac.h"
#include "csrc/sys/host.h"
#include "csrc/sys/memory_left.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::p2p {
namespace {

constexpr std::size_t kMostCallers = 1024;
constexpr std::size_t kMostReaches = 4096;
// To be connected where that is under way, and to have room for what was said.
constexpr Duration kShortestGoodbye = std::chrono::seconds(2);  // since something has moved
constexpr Duration kLongestGoodbye = std::chrono::seconds(20);  // of peers that are slow
constexpr Duration kBetweenInterruptLooks = std::chrono::milliseconds(50);
constexpr Duration kLongestSleep = std::chrono::hours(1);
constexpr Duration kBetweenDeadlines = std::chrono::seconds(1);  // of callers that do not greet

Status closed() { return Status::aborted("this session is closed"); }

/// For both sides of the connections to its earlier lives.
Status came_back(const SessionId& peer) {
    return Status::peer_lost(kNoRank,
                             concat("session \"", peer.name, "\" has come back in another life"));
}

/// One that was not loaded here.
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
        const auto find_way = [core = weak_from_this()](const std::shared_ptr<Connection>& through,
                                                        const abi::MemoryDescriptor& memory) {
            const auto alive = core.lock();
            return alive == nullptr ? Result(through) : alive->connection_into(through, memory);
        };
        matcher = std::make_shared<Matcher>(peer, waiter_, find_way);
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

Result<std::shared_ptr<LocalMemory>> SessionCore::add(const transport::Memory& memory,
                                                      std::shared_ptr<const void> owner) {
    PCCL_ASSIGN_OR_RETURN(const auto identity, identity_for_memory());
    std::vector<std::unique_ptr<transport::Registration>> registrations;
    for (transport::RmaTransport* const way :
         {static_cast<transport::RmaTransport*>(by_messages_.get()), direct_.get()}) {
        if (way == nullptr) continue;
        PCCL_ASSIGN_OR_RETURN(auto registration, way->add(memory, identity));
        registrations.push_back(std::move(registration));
    }
    auto added = std::make_shared<LocalMemory>(memory, std::move(owner), std::move(registrations));
    PCCL_TRY(remember(added));
    return added;
}

Status SessionCore::remember(const std::shared_ptr<LocalMemory>& memory) {
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
    if (!left.is_ok()) return Status::ok();  // the kernel may say more
    if (bytes <= left->bytes && untouched_bytes() <= left->bytes - bytes) return Status::ok();
    return Status::resource_exhausted(
        concat("cannot allocate ", bytes, " bytes: ", left->bytes, " can be had (", left->bound,
               "), of which this session has been given ", untouched_bytes(), " already"));
}

Result<std::shared_ptr<LocalMemory>> SessionCore::allocate(std::size_t bytes) {
    PCCL_TRY(check_room(bytes));
    PCCL_ASSIGN_OR_RETURN(auto mapping, transport::Mapping::shareable("p2p", bytes));
    auto owner = std::make_shared<transport::Mapping>(std::move(mapping));
    const auto memory = owner->memory();
    const int file = owner->file();
    return add({.data = memory.data(), .bytes = bytes, .file = file}, std::move(owner));
}

Status SessionCore::check_own(const LocalMemory* memory) const {
    if (memory != nullptr && mark_of(memory->descriptor().id) == mark_of(info_.id.incarnation))
        return Status::ok();
    return Status::invalid_argument(concat("the memory is registered with another session than \"",
                                           info_.id.name, "\": register it with this one"));
}

Status SessionCore::end(const std::shared_ptr<LocalMemory>& memory) {
    PCCL_TRY(check_own(memory.get()));
    PCCL_TRY(memory->deregister());
    const std::lock_guard lock(mutex_);
    memories_.erase(memory);
    inquiries_->catalog().forget(memory->descriptor());
    return Status::ok();
}

Status SessionCore::publish(const std::string& name, const std::shared_ptr<LocalMemory>& memory) {
    PCCL_TRY(check_own(memory.get()));
    const std::lock_guard lock(mutex_);  // end() comes before or after it
    if (closed_) return closed();
    if (!memories_.contains(memory))
        return Status::invalid_argument("the memory is not registered with this session any more");
    return inquiries_->catalog().publish(name, memory->descriptor());
}

Status SessionCore::load(const ConnectionInfo& peer) {
    Connections others;
    {
        const std::lock_guard lock(mutex_);
        if (closed_) return closed();
        lives_.load(peer);
        others = take_others(peer.id);
    }
    displace(others, peer);
    return Status::ok();
}

void SessionCore::displace(const Connections& others, const ConnectionInfo& by) {
    for (const auto& other : others) {
        record(runtime::SessionEventKind::kDisplaced, other->peer().to_string(),
               concat("by ", by.to_string()));
        other->close(came_back(by.id));
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
    const ConnectionInfo* const found = lives_.find(peer);
    return found == nullptr ? Result<SessionId>(unknown(peer)) : found->id;
}

Status SessionCore::reach(const abi::MemoryDescriptor& memory) {
    if (memory.kind == abi::MemoryKind::kHost || direct_ == nullptr) return Status::ok();
    if (!transport::shm::key_on_this_host(memory).is_ok()) return Status::ok();  // reads a file
    const std::pair name{memory.id, memory.nonce};
    {
        const std::lock_guard lock(mutex_);
        const auto known = reach_.find(name);
        if (known != reach_.end()) return known->second;
    }
    Status found = direct_->reaches(memory);
    // What has ended is told by who copies.
    if (found.code() == StatusCode::kUnavailable) return Status::ok();
    const std::lock_guard lock(mutex_);
    if (reach_.size() >= kMostReaches) reach_.clear();
    reach_.emplace(name, found);
    return found;
}

Result<Way> SessionCore::connection_for(const Plan& plan) {
    PCCL_TRY(check_own(&plan.local()));
    const RemoteMemory& remote = plan.remote();
    return connection_to(remote.owner.name, &remote.owner, reach(remote.descriptor));
}

/// The peer writes where it is told: its sends go by the connection of the receive.
Result<std::shared_ptr<Connection>> SessionCore::connection_for(const std::string& peer,
                                                                const MessageOrder& order) {
    PCCL_TRY(check_own(order.memory.get()));
    const bool sends = order.direction == Direction::kSend;
    PCCL_ASSIGN_OR_RETURN(
        Way way,
        connection_to(peer, nullptr, sends ? Status::ok() : reach(order.memory->descriptor())));
    return std::move(way.connection);
}

Result<std::shared_ptr<Connection>> SessionCore::connection_into(
    const std::shared_ptr<Connection>& through, const abi::MemoryDescriptor& memory) {
    const Status reached = through->path().is_direct ? reach(memory) : Status::ok();
    if (reached.is_ok()) return through;
    const SessionId& life = through->peer().id;
    PCCL_ASSIGN_OR_RETURN(Way way, connection_to(life.name, &life, reached));
    return std::move(way.connection);
}

Result<Way> SessionCore::connection_to(const std::string& peer, const SessionId* life,
                                       const Status& reach) {
    const std::lock_guard lock(mutex_);
    if (closed_) return closed();
    auto connection = find(peer, false);
    const bool goes_by_messages =
        connection != nullptr && connection->is_whole() && !connection->path().is_direct;
    if (!reach.is_ok() && !goes_by_messages) connection = find(peer, true);
    const ConnectionInfo* const known = lives_.find(peer);
    if (known == nullptr) return unknown(peer);
    if (life != nullptr && known->id != *life)
        return Status::unavailable(concat("session \"", peer,
                                          "\" has come back in another life since its memory was ",
                                          "imported: import what it has now"));
    if (connection != nullptr) return Way{std::move(connection)};
    if (lives_.cannot_be_called(peer)) return has_gone(*known);
    PCCL_ASSIGN_OR_RETURN(auto approach,
                          Approach::call(own_side(), *known, reach, ended_with(known->id)));
    connection = Connection::make(parts_for(known->id), *known, std::move(approach), patience());
    add_locked(connection);
    return Way{std::move(connection), true};
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

std::shared_ptr<Connection> SessionCore::find(const std::string& peer, bool is_aside) const {
    const auto [first, last] = connections_.equal_range(peer);
    const auto alive = std::find_if(first, last, [is_aside](const auto& each) {
        return each.second->is_usable() && each.second->is_aside() == is_aside;
    });
    return alive == last ? nullptr : alive->second;
}

void SessionCore::add_locked(const std::shared_ptr<Connection>& connection) {
    const std::string& peer = connection->peer().id.name;
    lives_.wake(peer);
    connections_.emplace(peer, connection);
    is_busy_.store(true);
    runtime_->notify();
    waiter_->wake();
}

void SessionCore::let_rest(const Connections& gone) {
    for (const auto& connection : gone) {
        const std::string& peer = connection->peer().id.name;
        if (connections_.contains(peer)) continue;
        if (const auto forgotten = lives_.rest(peer)) ended_.forget(*forgotten);
    }
}

SessionCore::Connections SessionCore::take_others(const SessionId& life) {
    Connections others;
    const auto [first, last] = connections_.equal_range(life.name);
    for (auto each = first; each != last;) {
        if (each->second->peer().id == life) {
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

Result<std::shared_ptr<Task>> SessionCore::begin(Order order) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const Way way, connection_for(*order.plan));
        PCCL_TRY(order.plan->local().begin_use());
        auto task = way.connection->begin(std::move(order));
        // One that was lost before is no answer to this call; one that was made for it is.
        if (way.is_new || !task->was_refused()) return task;
        order = task->order();
    }
}

Status SessionCore::say(const std::string& peer, const PeerWord& word) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const Way way, connection_to(peer));
        way.connection->listen();
        if (!way.is_new && !way.connection->is_usable()) continue;
        const Status said = way.connection->say(word);
        if (said.is_ok() || way.is_new || !way.connection->is_lost()) return said;
    }
}

std::vector<Notification> SessionCore::take_notifications() {
    auto all = inbox_->take_all();
    if (all.size() >= Inbox::kMost) waiter_->wake();  // those behind them have room now
    return all;
}

Result<std::optional<SessionId>> SessionCore::take_caller(const std::string& peer) {
    const std::lock_guard lock(mutex_);
    if (closed_) return closed();
    const auto connection = peer.empty() ? first_untold() : first_whole(peer);
    if (connection == nullptr) return std::optional<SessionId>();
    const SessionId& caller = connection->peer().id;
    for (Arrival& each : arrived_) each.is_told |= each.who() == caller;
    return std::optional(caller);
}

std::shared_ptr<Connection> SessionCore::first_untold() const {
    // One that has connected anew before its last connection was found to be lost is told then.
    const auto is_known = [this](const SessionId& who) {
        return std::ranges::any_of(arrived_, [&who](const Arrival& each) {
            return each.is_told && each.who() == who && each.is_there();
        });
    };
    for (const Arrival& each : arrived_)
        if (!each.is_told && each.is_there() && !is_known(each.who())) return each.connection;
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
    const Status said = see_off(gone, reason, interrupted);
    const std::lock_guard lock(mutex_);
    for (const auto& connection : gone) ended_.add(connection->peer().id, connection->number());
    std::erase_if(connections_, [&gone](const auto& each) {
        return std::ranges::find(gone, each.second) != gone.end();
    });
    let_rest(gone);
    return said;
}

Status SessionCore::see_off(const Connections& leaving, const Status& reason,
                            const Interrupted& interrupted) {
    for (const auto& connection : leaving) connection->wind_up(reason);
    const Status said = await_last_words(leaving, interrupted);
    for (const auto& connection : leaving) connection->close(reason);
    return said;
}

Status SessionCore::await_last_words(const Connections& leaving, const Interrupted& interrupted) {
    const auto has_unsaid = [](const auto& connection) { return connection->has_unsaid(); };
    const Deadline longest = Deadline::after(kLongestGoodbye);
    Deadline deadline = longest.within(kShortestGoodbye);
    Deadline next_look = longest.within(kBetweenInterruptLooks);
    Help help(*this);
    transport::Backoff backoff(*waiter_);
    while (std::ranges::any_of(leaving, has_unsaid) && !deadline.passed()) {
        if (interrupted && next_look.passed()) {
            PCCL_TRY(interrupted());
            next_look = longest.within(kBetweenInterruptLooks);
        }
        if (help.carry()) {
            backoff.reset();
            deadline = longest.within(kShortestGoodbye);
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

bool SessionCore::carry_all() {
    bool moved = hear_callers();
    for (const auto& connection : all_connections()) {
        moved |= connection->try_carry();
        moved |= connection->listener().advance();
    }
    return inquiries_->advance() || moved;
}

Duration SessionCore::longest_sleep() const {
    Duration longest = awaits_greeting_.load() ? kBetweenDeadlines : kLongestSleep;
    for (const auto& connection : all_connections())
        longest = std::min(longest, connection->longest_sleep());
    return longest;
}

bool SessionCore::progress() {
    const bool moved = carry_all();
    drop_lost();
    tell_refusals();
    return moved;
}

void SessionCore::tell_refusals() {
    const std::uint64_t all = refusals();
    const std::uint64_t told = told_refusals_.exchange(all);
    if (all <= told) return;
    const std::string what =
        concat(all - told, " requests for memory that is not registered with it, or beyond it");
    record(runtime::SessionEventKind::kRefused, {}, what);
    refusals_.line(LogLevel::kWarning, info_.id.name, "session \"", info_.id.name, "\" refused ",
                   what);
}

void SessionCore::drop_lost() {
    Connections lost;  // their end is not under the lock
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
    callers_.push_back({std::move(link), {}, patience()});
    is_busy_.store(true);
    runtime_->notify();
    waiter_->wake();
}

void SessionCore::accept_region(const transport::LinkRequest&, std::unique_ptr<transport::Region>) {
    refuse(Status::unsupported("sessions share no regions"));
}

bool SessionCore::hear_callers() {
    const std::unique_lock hearing(hearing_, std::try_to_lock);
    if (!hearing.owns_lock()) return false;
    {
        const std::lock_guard lock(mutex_);
        heard_.splice(heard_.end(), callers_);
    }
    const std::size_t before = heard_.size();
    heard_.remove_if([this](Caller& caller) { return !hear(caller); });
    awaits_greeting_.store(!heard_.empty());
    return heard_.size() != before;
}

bool SessionCore::hear(Caller& caller) {
    auto greeting = caller.reader.next(*caller.link);
    if (greeting.is_ok() && !*greeting) {
        if (!caller.deadline.passed()) return true;
        greeting = Status::timeout("a session connects, and does not greet in time");
    }
    Status status = greeting.status();
    if (status.is_ok())
        status = take(std::move(**greeting), std::move(caller.link));
    else
        caller.link->abort(status);
    if (!status.is_ok()) refuse(status);
    return false;
}

Status SessionCore::take(Greeting greeting, std::unique_ptr<transport::RecvLink> link) {
    if (const auto* const hello = std::get_if<Hello>(&greeting))
        return take_hello(*hello, std::move(link));
    return take_welcome(std::get<Welcome>(greeting), std::move(link));
}

Status SessionCore::take_hello(const Hello& hello, std::unique_ptr<transport::RecvLink> link) {
    if (const Status admitted = admit(hello.from); !admitted.is_ok()) {
        link->abort(admitted);
        return admitted.with_context(hello.from.to_string());
    }
    PCCL_ASSIGN_OR_RETURN(auto approach, Approach::answer(own_side(), hello, std::move(link)));
    const std::lock_guard lock(mutex_);
    if (closed_) return closed();
    // Its successor may have been loaded meanwhile.
    if (const Status admitted = lives_.greet(hello.from); !admitted.is_ok()) {
        approach->give_up(admitted);
        return admitted.with_context(hello.from.to_string());
    }
    leave_ended(hello);
    const auto connection =
        Connection::make(parts_for(hello.from.id), hello.from, std::move(approach), patience());
    arrived_.push_back({connection});
    add_locked(connection);
    return Status::ok();
}

Status SessionCore::admit(const ConnectionInfo& caller) {
    Connections others;
    {
        const std::lock_guard lock(mutex_);
        PCCL_TRY(lives_.greet(caller));
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
    const Status said = see_off(all_connections(), reason, interrupted);
    std::list<Caller> callers;
    std::set<std::shared_ptr<LocalMemory>> memories;
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(closed_, true)) return said;
        callers.splice(callers.end(), callers_);
        memories.swap(memories_);
    }
    runtime_->unregister_rank({info_.group, kNoRank});
    is_busy_.store(false);
    const std::lock_guard hearing(hearing_);
    callers.splice(callers.end(), heard_);
    for (const Caller& caller : callers) caller.link->abort(reason);
    for (const auto& connection : all_connections()) connection->close(reason);
    tell_refusals();
    // Nothing uses them any more; peers have heard why.
    for (const auto& memory : memories) static_cast<void>(memory->deregister());
    const std::lock_guard lock(mutex_);
    connections_.clear();
    arrived_.clear();
    return said;
}

}  // namespace pccl::p2p
