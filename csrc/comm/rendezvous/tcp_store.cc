#include "csrc/comm/rendezvous/tcp_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <span>

#include "csrc/base/ids.h"
#include "csrc/base/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::comm {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);  // for an answer that needs no waiting
constexpr Duration kAttempt = std::chrono::seconds(5);    // for one connection
constexpr Duration kFirstPause = std::chrono::milliseconds(5);
constexpr Duration kLongestPause = std::chrono::milliseconds(200);

Deadline sooner(Deadline a, Duration b) { return a.remaining() < b ? a : Deadline::after(b); }

std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

Result<std::vector<sys::Address>> named_addresses(const StoreLocation& location) {
    if (const auto literal = sys::Address::from_ip(location.host, location.port); literal.is_ok())
        return std::vector{literal.value()};
    if (location.host == "localhost") return sys::resolve(location.host, location.port);
    std::vector<sys::Address> any;
    for (const char* const ip : {"0.0.0.0", "::"}) {
        PCCL_ASSIGN_OR_RETURN(any.emplace_back(), sys::Address::from_ip(ip, location.port));
    }
    return any;
}

/// Without those of a family that is switched off on this machine, unless nothing would be left.
Result<std::vector<sys::Address>> listening_addresses(const StoreLocation& location) {
    PCCL_ASSIGN_OR_RETURN(const auto named, named_addresses(location));
    std::vector<sys::Address> usable;
    std::ranges::copy_if(named, std::back_inserter(usable), [](const sys::Address& address) {
        return sys::listen_on(address.with_port(0)).is_ok();
    });
    return usable.empty() ? named : usable;
}

}  // namespace

std::string StoreLocation::to_string() const {
    const bool is_v6 = host.find(':') != std::string::npos;
    return is_v6 ? concat("tcp://[", host, "]:", port) : concat("tcp://", host, ":", port);
}

Result<std::shared_ptr<TcpStore>> TcpStore::host(const StoreLocation& location, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto addresses, listening_addresses(location));
    auto server = StoreServer::start(addresses);
    if (!server.is_ok())
        return server.status().with_context(
            concat("rank 0 cannot serve the store ", location.to_string(),
                   "; rank 0 must run on that host, and the port must be free"));
    const sys::Address bound = server.value()->addresses().front();
    std::shared_ptr<TcpStore> store(new TcpStore({location.host, bound.port()}), LeaveToParent());
    store->server_ = std::move(server).value();
    PCCL_TRY(store->greet(bound, deadline));
    return store;
}

Result<std::shared_ptr<TcpStore>> TcpStore::join(const StoreLocation& location, Deadline deadline) {
    std::shared_ptr<TcpStore> store(new TcpStore(location), LeaveToParent());
    PCCL_TRY(store->connect(deadline));
    return store;
}

Status TcpStore::connect(Deadline deadline) {
    Duration pause = kFirstPause;
    while (true) {
        Status status = connect_once(deadline);
        if (status.is_ok() || status.code() == StatusCode::kInvalidArgument) return status;
        if (deadline.passed())
            return Status::timeout(concat("nobody serves the store ", location_.to_string(), " (",
                                          status.message(), "); is rank 0 running there?"),
                                   0);
        system_clock().sleep_for(std::min(pause, deadline.remaining()));
        pause = std::min(2 * pause, kLongestPause);
    }
}

Status TcpStore::connect_once(Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto addresses, sys::resolve(location_.host, location_.port));
    Status status = Status::unavailable("the name has no address");
    for (const sys::Address& address : addresses)
        if (status = greet(address, sooner(deadline, kAttempt)); status.is_ok()) break;
    return status;
}

Status TcpStore::greet(const sys::Address& address, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(socket_, sys::connect_to(address, deadline));
    PCCL_ASSIGN_OR_RETURN(const sys::Address mine, sys::local_address(socket_.get()));
    // Trying a free port of the ephemeral range often enough connects a socket to itself.
    if (mine == address) return Status::unavailable("nobody listens there");
    PCCL_TRY(sys::send_all(socket_.get(), as_bytes(kStoreGreeting), deadline));
    std::array<std::byte, kStoreGreeting.size()> greeting{};
    PCCL_TRY(sys::receive_all(socket_.get(), greeting, deadline));
    if (std::ranges::equal(greeting, as_bytes(kStoreGreeting))) return Status::ok();
    return Status::invalid_argument(
        concat("the service at ", location_.to_string(), " is no pccl store; use another port"));
}

Status TcpStore::set(const std::string& key, const std::string& value) {
    PCCL_TRY(check_entry(key, value));
    return call({StoreVerb::kSet, 0, key, value, 0}, Deadline::after(kPatience)).status();
}

Result<std::string> TcpStore::get(const std::string& key, Deadline deadline) {
    PCCL_TRY(check_key(key));
    const bool wait = !deadline.passed();
    auto value = call({wait ? StoreVerb::kGet : StoreVerb::kLookUp, 0, key, {}, 0},
                      wait ? deadline : Deadline::after(kPatience));
    if (value.status().code() != StatusCode::kTimeout) return value;
    return Status::timeout(
        concat("nobody has set \"", key, "\" in the store ", location_.to_string()));
}

Result<std::int64_t> TcpStore::add(const std::string& key, std::int64_t delta) {
    PCCL_TRY(check_key(key));
    PCCL_ASSIGN_OR_RETURN(const std::string text,
                          call({StoreVerb::kAdd, 0, key, {}, delta}, Deadline::after(kPatience)));
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

Status TcpStore::remove(const std::string& key) {
    PCCL_TRY(check_key(key));
    return call({StoreVerb::kRemove, 0, key, {}, 0}, Deadline::after(kPatience)).status();
}

Result<std::string> TcpStore::call(StoreRequest request, Deadline deadline) {
    if (made_in_.is_child())
        return Status::unavailable(concat("the connection to the store ", location_.to_string(),
                                          " belongs to the parent of this forked process"));
    PCCL_TRY(health_);
    request.id = ++last_id_;
    if (const Status sent =
            sys::send_all(socket_.get(), as_bytes(frame_of(request)), Deadline::after(kPatience));
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
    if (const Status sent =
            sys::send_all(socket_.get(), as_bytes(frame_of(cancel)), Deadline::after(kPatience));
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

}  // namespace pccl::comm
