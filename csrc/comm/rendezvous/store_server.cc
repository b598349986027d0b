#include "csrc/comm/rendezvous/store_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "csrc/base/log.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kMostConnections = 4096;
constexpr std::size_t kMostPending = kLongestFrame + 4;
constexpr Duration kFarewell = std::chrono::seconds(1);
constexpr Duration kAcceptPause = std::chrono::milliseconds(20);

std::span<const std::byte> as_bytes(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::start(std::span<const sys::Address> addresses) {
    std::unique_ptr<StoreServer> server(new StoreServer);
    server->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!server->epoll_.is_open()) return Status::from_errno(errno, "cannot create an epoll set");
    server->stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!server->stop_.is_open()) return Status::from_errno(errno, "cannot create an eventfd");
    PCCL_TRY(server->watch(server->stop_.get(), EPOLL_CTL_ADD, false));
    for (const sys::Address& address : addresses) PCCL_TRY(server->listen(address));
    server->thread_ =
        std::make_unique<BackgroundThread>("pccl-store", [raw = server.get()] { raw->serve(); });
    return server;
}

StoreServer::~StoreServer() {
    stopping_.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    thread_.reset();
    const Deadline farewell = Deadline::after(kFarewell);
    for (auto& [fd, connection] : connections_)
        static_cast<void>(sys::send_all(fd, as_bytes(connection.out), farewell));
}

Status StoreServer::listen(const sys::Address& address) {
    PCCL_ASSIGN_OR_RETURN(UniqueFd listener, sys::listen_on(address));
    PCCL_ASSIGN_OR_RETURN(const sys::Address bound, sys::local_address(listener.get()));
    PCCL_TRY(watch(listener.get(), EPOLL_CTL_ADD, false));
    addresses_.push_back(bound);
    listeners_.push_back(std::move(listener));
    return Status::ok();
}

Status StoreServer::watch(int fd, int action, bool output) const {
    epoll_event interest{};
    interest.events = output ? EPOLLOUT : EPOLLIN;
    interest.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), action, fd, &interest) != 0)
        return Status::from_errno(errno, "cannot watch a socket");
    return Status::ok();
}

void StoreServer::serve() {
    std::array<epoll_event, 64> events{};
    while (!stopping_.load()) {
        const int count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
        for (int i = 0; i < count; ++i) {
            const int fd = events[static_cast<std::size_t>(i)].data.fd;
            if (const auto found = connections_.find(fd); found != connections_.end())
                advance(found->second);
            else if (is_listener(fd))
                accept_from(fd);
        }
    }
}

bool StoreServer::is_listener(int fd) const {
    return std::ranges::any_of(listeners_, [fd](const UniqueFd& own) { return own.get() == fd; });
}

void StoreServer::accept_from(int listener) {
    auto next = sys::accept_next(listener);
    if (!next.is_ok()) {
        log(LogLevel::kWarning, "rendezvous store: ", next.status().message());
        system_clock().sleep_for(kAcceptPause);  // until descriptors are free again
        return;
    }
    if (!next->has_value()) return;
    const int fd = (*next)->get();
    if (connections_.size() >= kMostConnections || !watch(fd, EPOLL_CTL_ADD, false).is_ok()) {
        log(LogLevel::kWarning, "rendezvous store: refused a connection, ", connections_.size(),
            " are open");
        return;
    }
    connections_[fd].socket = std::move(**next);
}

void StoreServer::advance(Connection& connection) {
    Status status = connection.out.empty() ? receive(connection) : Status::ok();
    if (status.is_ok()) status = flush(connection);
    // Frames that came while the last answer was on its way.
    while (status.is_ok() && connection.out.empty() && !connection.in.empty()) {
        const std::size_t before = connection.in.size();
        status = connection.greeted ? obey(connection) : greet(connection);
        if (status.is_ok()) status = flush(connection);
        if (connection.in.size() == before) break;
    }
    if (!status.is_ok()) drop(connection, status);
}

Status StoreServer::receive(Connection& connection) {
    std::array<std::byte, 16 * kKiB> piece{};
    const std::size_t room = std::min(piece.size(), kMostPending - connection.in.size());
    PCCL_ASSIGN_OR_RETURN(const std::size_t count,
                          sys::receive_some(connection.socket.get(), std::span(piece).first(room)));
    connection.in.append(reinterpret_cast<const char*>(piece.data()), count);
    return Status::ok();
}

Status StoreServer::greet(Connection& connection) {
    const std::size_t length = std::min(connection.in.size(), kStoreGreeting.size());
    if (connection.in.compare(0, length, kStoreGreeting.substr(0, length)) != 0)
        return Status::invalid_argument("it does not greet like a rank");
    if (length < kStoreGreeting.size()) return Status::ok();
    connection.in.erase(0, length);
    connection.out += kStoreGreeting;
    connection.greeted = true;
    return Status::ok();
}

Status StoreServer::obey(Connection& connection) {
    PCCL_ASSIGN_OR_RETURN(const auto payload, take_frame(connection.in));
    if (!payload) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(StoreRequest request, parse_request(*payload));
    if (connection.parked && request.verb != StoreVerb::kCancel)
        return Status::invalid_argument("it asks again before it was answered");
    execute(connection, request);
    return Status::ok();
}

void StoreServer::execute(Connection& connection, StoreRequest& request) {
    const std::string* const found = entries_.find(request.key);
    switch (request.verb) {
        case StoreVerb::kSet: {
            const Status status = entries_.set(request.key, request.value);
            answer(connection, request.id, status.is_ok() ? Result<std::string>("") : status);
            if (status.is_ok()) wake_waiters(request.key);
            break;
        }
        case StoreVerb::kLookUp:
            answer(connection, request.id,
                   found != nullptr ? Result<std::string>(*found) : Status::timeout("no such key"));
            break;
        case StoreVerb::kGet:
            if (found != nullptr) {
                answer(connection, request.id, *found);
            } else {
                waiters_.emplace(request.key, connection.socket.get());
                connection.parked = Parked{std::move(request.key), request.id};
            }
            break;
        case StoreVerb::kAdd: {
            const auto value = entries_.sum(request.key, request.delta);
            const std::string text = value.is_ok() ? std::to_string(value.value()) : "";
            const Status status = value.is_ok() ? entries_.set(request.key, text) : value.status();
            answer(connection, request.id, status.is_ok() ? Result<std::string>(text) : status);
            if (status.is_ok()) wake_waiters(request.key);
            break;
        }
        case StoreVerb::kRemove:
            entries_.remove(request.key);
            answer(connection, request.id, std::string());
            break;
        case StoreVerb::kCancel:
            unpark(connection);
            break;
    }
}

void StoreServer::wake_waiters(const std::string& key) {
    const auto [first, last] = waiters_.equal_range(key);
    if (first == last) return;
    std::vector<int> waiting;
    for (auto waiter = first; waiter != last; ++waiter) waiting.push_back(waiter->second);
    waiters_.erase(first, last);
    const std::string value = *entries_.find(key);
    for (const int fd : waiting) {
        Connection& connection = connections_.at(fd);
        answer(connection, std::exchange(connection.parked, std::nullopt)->id, value);
        if (const Status status = flush(connection); !status.is_ok()) drop(connection, status);
    }
}

void StoreServer::unpark(Connection& connection) {
    if (!connection.parked) return;
    const auto [first, last] = waiters_.equal_range(connection.parked->key);
    const auto mine = std::find_if(
        first, last, [&](const auto& waiter) { return waiter.second == connection.socket.get(); });
    if (mine != last) waiters_.erase(mine);
    connection.parked.reset();
}

void StoreServer::answer(Connection& connection, std::uint32_t id,
                         const Result<std::string>& result) {
    const Status status = result.status();
    connection.out += frame_of(StoreAnswer{
        .id = id,
        .code = status.code(),
        .text = status.is_ok() ? result.value() : status.message().substr(0, kLongestValue)});
}

Status StoreServer::flush(Connection& connection) const {
    const int fd = connection.socket.get();
    if (!connection.out.empty()) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t sent, sys::send_some(fd, as_bytes(connection.out)));
        connection.out.erase(0, sent);
    }
    const bool writing = !connection.out.empty();
    if (writing == connection.writing) return Status::ok();
    connection.writing = writing;
    return watch(fd, EPOLL_CTL_MOD, writing);
}

void StoreServer::drop(Connection& connection, const Status& why) {
    unpark(connection);
    const int fd = connection.socket.get();
    if (why.code() != StatusCode::kPeerLost) {
        const auto from = sys::peer_address(fd);
        log(LogLevel::kWarning, "rendezvous store: dropped ",
            from.is_ok() ? from.value().to_string() : "a connection", ": ", why.message());
    }
    connections_.erase(fd);
}

}  // namespace pccl::comm
