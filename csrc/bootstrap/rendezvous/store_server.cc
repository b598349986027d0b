// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/store_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/host.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::bootstrap {
namespace {

constexpr std::size_t kMostPending = kLongestFrame + 4;
constexpr Duration kFarewell = std::chrono::seconds(1);
constexpr Duration kBetweenLooks = std::chrono::seconds(1);

std::span<const std::byte> view_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

StoreServer::StoreServerOptions within_limits(StoreServer::StoreServerOptions options) {
    if (options.most_clients == 0) options.most_clients = sys::most_descriptors() / 4 * 3;
    return options;
}

}  // namespace

StoreServer::StoreServer(const StoreServerOptions& options) : options_(within_limits(options)) {}

Result<std::unique_ptr<StoreServer>> StoreServer::start(std::span<const sys::Address> addresses,
                                                        const StoreServerOptions& options) {
    std::unique_ptr<StoreServer> server(new StoreServer(options));
    server->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!server->epoll_.is_open()) return Status::from_errno(errno, "cannot create an epoll set");
    server->stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!server->stop_.is_open()) return Status::from_errno(errno, "cannot create an eventfd");
    PCCL_TRY(server->watch(server->stop_.get(), EPOLL_CTL_ADD, EPOLLIN));
    for (const sys::Address& address : addresses) PCCL_TRY(server->listen(address));
    server->thread_ =
        std::make_unique<BackgroundThread>("pccl-store", [raw = server.get()] { raw->serve(); });
    return server;
}

StoreServer::~StoreServer() {
    if (made_in_.is_child()) return;  // the sockets belong to the parent
    stopping_.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    thread_.reset();
    const Deadline farewell = Deadline::after(kFarewell);
    for (auto& [fd, connection] : connections_)
        static_cast<void>(sys::send_all(fd, view_of(connection.out), farewell));
}

Status StoreServer::listen(const sys::Address& address) {
    PCCL_ASSIGN_OR_RETURN(auto door, transport::HandshakeServer::listen(address, {}));
    PCCL_TRY(watch(door->poll_fd(), EPOLL_CTL_ADD, EPOLLIN));
    addresses_.push_back(door->address());
    doors_.push_back(std::move(door));
    return Status::ok();
}

Status StoreServer::watch(int fd, int action, unsigned events) const {
    epoll_event interest{};
    interest.events = events;
    interest.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), action, fd, &interest) != 0)
        return Status::from_errno(errno, "cannot watch a socket");
    return Status::ok();
}

void StoreServer::serve() {
    const auto look_ms = std::chrono::duration_cast<std::chrono::milliseconds>(between_looks());
    std::array<epoll_event, 64> events{};
    while (!stopping_.load()) {
        const int longest = unfinished_ > 0 ? static_cast<int>(look_ms.count()) : -1;
        const int count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), longest);
        for (int i = 0; i < count; ++i) tend(events[static_cast<std::size_t>(i)].data.fd);
        drop_overdue();
        open_doors(connections_.size() < options_.most_clients);
    }
}

Duration StoreServer::between_looks() const {
    return std::min(options_.request_timeout, kBetweenLooks);
}

void StoreServer::tend(int fd) {
    if (const auto found = connections_.find(fd); found != connections_.end())
        return advance(found->second);
    for (const auto& door : doors_)
        if (door->poll_fd() == fd)
            door->advance(*this, [this](UniqueFd socket, const transport::Introduction&) {
                welcome(std::move(socket));
            });
}

void StoreServer::open_doors(bool open) {
    if (open == doors_are_open_) return;
    doors_are_open_ = open;
    for (const auto& door : doors_)
        static_cast<void>(watch(door->poll_fd(), EPOLL_CTL_MOD, open ? EPOLLIN : 0U));
    if (!open)
        log_.line(LogLevel::kWarning, "", "rendezvous store: ", connections_.size(),
                  " processes use it, as many as the limit of open files allows (ulimit -n); "
                  "others wait");
}

void StoreServer::welcome(UniqueFd socket) {
    const int fd = socket.get();
    const Status watched = watch(fd, EPOLL_CTL_ADD, EPOLLIN);
    if (!watched.is_ok()) return refused("tcp", watched);
    ClientConnection& connection = connections_[fd];
    connection.socket = std::move(socket);
    connection.owner = ++last_owner_;
}

std::optional<transport::Secret> StoreServer::secret_of(const transport::GroupId& group) {
    return group == kStoreGroup ? std::optional(options_.secret) : std::nullopt;
}

void StoreServer::refused(std::string_view, const Status& why) {
    // A client that closes the connection has rejected this server's proof, and reports it itself.
    const bool left = why.code() == StatusCode::kPeerLost;
    log_.line(left ? LogLevel::kInfo : LogLevel::kWarning, why.process().host,
              "rendezvous store: refused a connection: ", why.message());
}

void StoreServer::advance(ClientConnection& connection) {
    Status status = connection.out.empty() ? receive(connection) : Status::ok();
    if (status.is_ok()) status = flush(connection);
    // Handles frames that arrived while the last answer was being sent.
    while (status.is_ok() && connection.out.empty() && !connection.in.empty()) {
        const std::size_t before = connection.in.size();
        status = obey(connection);
        if (status.is_ok()) status = flush(connection);
        if (connection.in.size() == before) break;
    }
    if (!status.is_ok()) return drop(connection, status);
    if (!connection.in.empty()) begin_frame(connection);
}

Status StoreServer::receive(ClientConnection& connection) {
    std::array<std::byte, 16 * kKiB> piece{};
    const std::size_t room = std::min(piece.size(), kMostPending - connection.in.size());
    PCCL_ASSIGN_OR_RETURN(const std::size_t count,
                          sys::receive_some(connection.socket.get(), std::span(piece).first(room)));
    connection.in.append(reinterpret_cast<const char*>(piece.data()), count);
    return Status::ok();
}

Status StoreServer::obey(ClientConnection& connection) {
    PCCL_ASSIGN_OR_RETURN(const auto payload, take_frame(connection.in));
    if (!payload) return Status::ok();
    end_frame(connection);
    PCCL_ASSIGN_OR_RETURN(StoreRequest request, parse_request(*payload));
    if (connection.parked && request.verb != StoreVerb::kCancel)
        return Status::invalid_argument("it sent a request before the answer to its last one");
    execute(connection, request);
    return Status::ok();
}

void StoreServer::execute(ClientConnection& connection, StoreRequest& request) {
    const std::string* const found = entries_.find(request.key);
    switch (request.verb) {
        case StoreVerb::kSet: {
            const Status status = entries_.set(request.key, request.value, connection.owner);
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
            const Status status =
                value.is_ok() ? entries_.set(request.key, text, connection.owner) : value.status();
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
    std::vector<int> waiting;
    auto waiter = waiters_.lower_bound({key, 0});
    while (waiter != waiters_.end() && waiter->first == key) {
        waiting.push_back(waiter->second);
        waiter = waiters_.erase(waiter);
    }
    if (waiting.empty()) return;
    const std::string value = *entries_.find(key);
    for (const int fd : waiting) {
        ClientConnection& connection = connections_.at(fd);
        answer(connection, std::exchange(connection.parked, std::nullopt)->id, value);
        if (const Status status = flush(connection); !status.is_ok()) drop(connection, status);
    }
}

void StoreServer::unpark(ClientConnection& connection) {
    if (!connection.parked) return;
    waiters_.erase({connection.parked->key, connection.socket.get()});
    connection.parked.reset();
}

void StoreServer::answer(ClientConnection& connection, std::uint32_t id,
                         const Result<std::string>& result) {
    const Status status = result.status();
    connection.out += frame_of(StoreAnswer{
        .id = id,
        .code = status.code(),
        .text = status.is_ok() ? result.value() : status.message().substr(0, kLongestValue)});
}

Status StoreServer::flush(ClientConnection& connection) {
    const int fd = connection.socket.get();
    if (!connection.out.empty()) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t sent, sys::send_some(fd, view_of(connection.out)));
        connection.out.erase(0, sent);
    }
    const bool writing = !connection.out.empty();
    if (writing == connection.writing) return Status::ok();
    connection.writing = writing;
    if (writing)
        begin_frame(connection);
    else
        end_frame(connection);
    return watch(fd, EPOLL_CTL_MOD, writing ? EPOLLOUT : EPOLLIN);
}

void StoreServer::begin_frame(ClientConnection& connection) {
    if (connection.unfinished) return;
    connection.unfinished = Deadline::after(options_.request_timeout);
    ++unfinished_;
}

void StoreServer::end_frame(ClientConnection& connection) {
    if (!connection.unfinished) return;
    connection.unfinished.reset();
    --unfinished_;
}

void StoreServer::drop(ClientConnection& connection, const Status& why) {
    unpark(connection);
    end_frame(connection);
    const int fd = connection.socket.get();
    if (const auto from = sys::peer_address(fd);
        why.code() != StatusCode::kPeerLost && from.is_ok())
        log_.line(LogLevel::kWarning, from->ip_text(), "rendezvous store: dropped ",
                  from->to_string(), ": ", why.message());
    connections_.erase(fd);
}

void StoreServer::drop_overdue() {
    if (unfinished_ == 0 || !next_look_.passed()) return;
    next_look_ = Deadline::after(between_looks());
    const Status why = Status::timeout("it left a request unfinished, or an answer untaken");
    for (auto next = connections_.begin(); next != connections_.end();) {
        ClientConnection& connection = (next++)->second;
        if (connection.unfinished && connection.unfinished->passed()) drop(connection, why);
    }
}

}  // namespace pccl::bootstrap
