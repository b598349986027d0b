// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/tcp_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "csrc/base/fork.h"
#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/log/wait_notice.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/name_lookup.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/handshake.h"

namespace pccl::bootstrap {
namespace {

// Limit for one round of all addresses. While strangers occupy the server's handshakes, a rank
// waits in the kernel's queue; a retry would lose its place.
constexpr Duration kRound = std::chrono::seconds(30);
constexpr Duration kFirstDialPause = std::chrono::milliseconds(5);
constexpr Duration kLongestDialPause = std::chrono::milliseconds(200);

// Wait for a process that still serves there and is about to end, as after a restart of its job.
constexpr Duration kPortTimeout = std::chrono::seconds(5);

std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

StoreLocation location_at(const sys::Address& address) {
    return {.host = address.ip_text(), .port = address.port()};
}

/// Returns each address once, although a name may resolve to it several times.
Result<std::vector<sys::Address>> addresses_of(const StoreLocation& location, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto named, sys::resolve(location.host, location.port, deadline));
    std::vector<sys::Address> addresses;
    for (const sys::Address& address : named)
        if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
    return addresses;
}

/// Returns the addresses of this machine, or all of them where none is.
Result<std::vector<sys::Address>> own_addresses(const StoreLocation& location, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto named, addresses_of(location, deadline));
    std::vector<sys::Address> own;
    std::ranges::copy_if(named, std::back_inserter(own), [](const sys::Address& address) {
        return sys::listen_on(address.with_port(0)).is_ok();
    });
    return own.empty() ? named : own;
}

/// Servers of this process that groups may share, by location and secret.
struct SharedServers {
    using Key = std::pair<std::string, transport::Secret>;

    std::mutex mutex;
    std::map<Key, std::weak_ptr<StoreServer>> servers;  // guarded by mutex
};

SharedServers& shared_servers() {
    static auto* const shared = [] {
        auto* const made = new SharedServers;  // never destroyed
        hold_while_forking(made->mutex);
        return made;
    }();
    return *shared;
}

Result<std::shared_ptr<StoreServer>> start_server(const StoreLocation& location,
                                                  const transport::Secret& secret,
                                                  Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto addresses, own_addresses(location, deadline));
    auto server = StoreServer::start(addresses, {.secret = secret});
    if (server.is_ok()) return std::shared_ptr<StoreServer>(std::move(*server));
    return server.status().with_context(
        concat("rank 0 cannot serve the store ", location.to_string(),
               "; rank 0 must run on that host, and the port must be free"));
}

/// Returns a server of this process, or starts one as soon as the port is free.
Result<std::shared_ptr<StoreServer>> share_server(const StoreLocation& location,
                                                  const transport::Secret& secret,
                                                  Deadline deadline) {
    auto& [mutex, servers] = shared_servers();
    const SharedServers::Key key{location.to_string(), secret};
    for (Duration pause = kFirstDialPause;; pause = std::min(2 * pause, kLongestDialPause)) {
        {
            const std::lock_guard lock(mutex);
            auto server = servers[key].lock();
            if (server != nullptr && server->is_of_this_process()) return server;
            auto started = start_server(location, secret, deadline);
            if (started.is_ok()) servers[key] = *started;
            if (started.is_ok() || deadline.passed()) return started;
        }
        system_clock().sleep_for(std::min(pause, deadline.remaining()));
    }
}

}  // namespace

std::string StoreLocation::to_string() const {
    const bool is_v6 = host.find(':') != std::string::npos;
    return is_v6 ? concat("tcp://[", host, "]:", port) : concat("tcp://", host, ":", port);
}

Result<std::shared_ptr<TcpStore>> TcpStore::host(const StoreLocation& location, Deadline deadline,
                                                 const transport::Secret& secret,
                                                 StoreContent content) {
    PCCL_ASSIGN_OR_RETURN(auto server,
                          content == StoreContent::kAny
                              ? share_server(location, secret, deadline.within(kPortTimeout))
                              : start_server(location, secret, deadline));
    const sys::Address bound = server->addresses().front();
    std::shared_ptr<TcpStore> store(new TcpStore({location.host, bound.port()}, secret),
                                    LeaveToParent());
    store->server_ = std::move(server);
    PCCL_TRY(store->enter(bound, deadline));
    return store;
}

Result<std::shared_ptr<TcpStore>> TcpStore::join(const StoreLocation& location, Deadline deadline,
                                                 const transport::Secret& secret) {
    std::shared_ptr<TcpStore> store(new TcpStore(location, secret), LeaveToParent());
    PCCL_TRY(store->connect(deadline));
    return store;
}

Result<std::shared_ptr<TcpStore>> TcpStore::join_at_any(std::vector<sys::Address> addresses,
                                                        Deadline deadline,
                                                        const transport::Secret& secret) {
    std::shared_ptr<TcpStore> store(new TcpStore(location_at(addresses.front()), secret),
                                    LeaveToParent());
    store->addresses_ = std::move(addresses);
    PCCL_TRY(store->connect(deadline));
    return store;
}

Result<std::vector<sys::Address>> TcpStore::candidates(Deadline deadline) const {
    if (!addresses_.empty()) return addresses_;
    return addresses_of(location_, deadline);
}

Status TcpStore::connect(Deadline deadline) {
    const TimePoint begun = system_clock().now();
    WaitNotice notice;
    bool is_lost = false;
    Duration pause = kFirstDialPause;
    while (true) {
        const auto addresses = candidates(deadline);
        // The network or the name service may be starting up, but most often the name is wrong.
        if (!addresses.is_ok() && !std::exchange(is_lost, true))
            log(LogLevel::kWarning, where(), ": ", addresses.status().message(), "; trying on");
        Status status = addresses.is_ok() ? connect_once(*addresses, deadline) : addresses.status();
        if (status.is_ok() || status.code() == StatusCode::kInvalidArgument) return status;
        if (deadline.passed())
            return Status::timeout(
                concat("nobody serves the store ", location_.to_string(), " (", status.message(),
                       "); is rank 0 running there, and does the name "
                       "resolve there to an address that this machine reaches?"),
                0);
        if (const Duration waited = system_clock().now() - begun; notice.is_due(waited))
            log(LogLevel::kWarning, "has waited ", in_seconds(waited), " for rank 0 to serve ",
                where(), " (", status.message(), ")");
        system_clock().sleep_for(std::min(pause, deadline.remaining()));
        pause = std::min(2 * pause, kLongestDialPause);
    }
}

Status TcpStore::connect_once(std::span<const sys::Address> addresses, Deadline deadline) {
    const Duration attempt = kRound / addresses.size();
    Status status;
    for (const sys::Address& address : addresses) {
        status = enter(address, deadline.within(attempt));
        if (!status.is_ok()) continue;
        if (!addresses_.empty()) location_ = location_at(address);
        break;
    }
    return status;
}

Status TcpStore::enter(const sys::Address& address, Deadline deadline) {
    const transport::ConnectArgs door{
        .address = address, .secret = secret_, .of_strangers = StatusCode::kInvalidArgument};
    const transport::Introduction introduction{.request = {.group = kStoreGroup}};
    auto sockets = transport::connect_authenticated(door, {&introduction, 1}, deadline);
    if (sockets.is_ok()) socket_ = std::move(sockets->front());
    if (sockets.status().code() != StatusCode::kInvalidArgument) return sockets.status();
    const auto* const right =
        secret_ == kNoStoreSecret
            ? "; use another port, or set PCCL_SECRET_FILE where rank 0 has one"
            : "; use another port, and the same PCCL_SECRET_FILE on all ranks";
    return Status::invalid_argument(concat("the service at ", location_.to_string(),
                                           " is no pccl store of this job (",
                                           sockets.status().message(), ")", right));
}

Status TcpStore::set(const std::string& key, const std::string& value) {
    PCCL_TRY(check_entry(key, value));
    return call({StoreVerb::kSet, 0, key, value, 0}, Deadline::after(kStoreTimeout)).status();
}

Result<std::string> TcpStore::get(const std::string& key, Deadline deadline) {
    PCCL_TRY(check_key(key));
    const bool wait = !deadline.passed();
    auto value = call({wait ? StoreVerb::kGet : StoreVerb::kLookUp, 0, key, {}, 0},
                      wait ? deadline : Deadline::after(kStoreTimeout));
    if (value.status().code() != StatusCode::kTimeout) return value;
    return Status::timeout(
        concat("nobody has set \"", key, "\" in the store ", location_.to_string()));
}

Result<std::int64_t> TcpStore::add(const std::string& key, std::int64_t delta) {
    PCCL_TRY(check_key(key));
    PCCL_ASSIGN_OR_RETURN(const std::string text, call({StoreVerb::kAdd, 0, key, {}, delta},
                                                       Deadline::after(kStoreTimeout)));
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

Status TcpStore::remove(const std::string& key) {
    PCCL_TRY(check_key(key));
    return call({StoreVerb::kRemove, 0, key, {}, 0}, Deadline::after(kStoreTimeout)).status();
}

Status TcpStore::reopen(Deadline deadline) {
    if (server_ != nullptr || made_in_.is_child()) return health_;
    socket_.reset();
    in_.clear();
    health_ = Status::ok();
    const Status connected = connect(deadline);
    return connected.is_ok() ? connected : broken(connected);
}

Result<std::string> TcpStore::call(StoreRequest request, Deadline deadline) {
    if (made_in_.is_child())
        return Status::unavailable(concat("the connection to the store ", location_.to_string(),
                                          " belongs to the parent of this forked process"));
    PCCL_TRY(health_);
    request.id = ++last_id_;
    if (const Status sent = sys::send_all(socket_.get(), as_bytes(frame_of(request)),
                                          Deadline::after(kStoreTimeout));
        !sent.is_ok())
        return broken(sent);
    auto answer = await(request.id, deadline);
    if (!answer.is_ok()) return broken(answer.status());
    if (answer->has_value()) {
        if ((*answer)->code == StatusCode::kOk) return std::move((*answer)->text);
        return Status((*answer)->code, std::move((*answer)->text));
    }
    if (request.verb != StoreVerb::kGet) return broken(Status::timeout("no answer for 60 s"));
    const StoreRequest cancel{StoreVerb::kCancel, request.id, {}, {}, 0};
    if (const Status sent = sys::send_all(socket_.get(), as_bytes(frame_of(cancel)),
                                          Deadline::after(kStoreTimeout));
        !sent.is_ok())
        return broken(sent);
    return Status::timeout("");
}

Result<std::optional<StoreAnswer>> TcpStore::await(std::uint32_t id, Deadline deadline) {
    while (true) {
        PCCL_ASSIGN_OR_RETURN(const auto payload, take_frame(in_));
        if (!payload) {
            if (deadline.passed()) return std::optional<StoreAnswer>();
            PCCL_TRY(receive(deadline));
            continue;
        }
        PCCL_ASSIGN_OR_RETURN(StoreAnswer answer, parse_answer(*payload));
        if (answer.id == id) return std::optional(std::move(answer));
    }
}

Status TcpStore::receive(Deadline deadline) {
    const sys::Interest interest{.fd = socket_.get(), .input = true};
    if (!sys::wait_for_any({&interest, 1}, deadline.remaining())) return Status::ok();
    std::array<std::byte, 16 * kKiB> piece{};
    PCCL_ASSIGN_OR_RETURN(const std::size_t count, sys::receive_some(socket_.get(), piece));
    in_.append(reinterpret_cast<const char*>(piece.data()), count);
    return Status::ok();
}

Status TcpStore::broken(const Status& why) {
    health_ = Status::unavailable(concat("the store ", location_.to_string(),
                                         " has gone; did rank 0 leave? (", why.message(), ")"));
    return health_;
}

}  // namespace pccl::bootstrap
