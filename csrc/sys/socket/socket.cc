// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/socket.h"

#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>
#include <memory>

#include "csrc/base/ids.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"

namespace pccl::sys {
namespace {

constexpr int kBacklog = 4096;  // all ranks of a large group may connect to one at once
constexpr Duration kRetryPause = std::chrono::milliseconds(1);

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

template <typename Call>
auto retry_interrupted(Call call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

/// Returns the status for a failed send or receive.
Status stream_fault(int error, std::string_view what) {
    switch (error) {
        case EPIPE:
        case ECONNRESET:
        case ECONNABORTED:
        case ENOTCONN:
            return Status::peer_lost(kNoRank, Status::from_errno(error, what).message());
        case EHOSTUNREACH:
        case EHOSTDOWN:
        case ENETUNREACH:
        case ENETDOWN:
            return Status::timeout(Status::from_errno(error, what).message());
        default:
            return Status::from_errno(error, what);
    }
}

msghdr message_of(std::span<const iovec> pieces) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    return message;
}

/// Returns the result of a receive call: its count, or the error in errno.
Result<std::size_t> received_by(ssize_t received) {
    if (received > 0) return static_cast<std::size_t>(received);
    if (received == 0) return Status::peer_lost(kNoRank, "the connection was closed");
    if (would_block(errno)) return std::size_t{0};
    return stream_fault(errno, "cannot receive");
}

void set_option(int fd, int level, int name, int value) {
    // Failures are ignored: options only tune, and an old kernel or a sandbox that refuses one
    // still carries data.
    static_cast<void>(::setsockopt(fd, level, name, &value, sizeof value));
}

void set_user_timeout(int fd, std::chrono::milliseconds silence) {
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silence.count()));
}

void set_buffer(int fd, int forced_name, int name, int bytes) {
    // The forced form exceeds the system's limit and requires CAP_NET_ADMIN.
    if (::setsockopt(fd, SOL_SOCKET, forced_name, &bytes, sizeof bytes) != 0)
        set_option(fd, SOL_SOCKET, name, bytes);
}

void set_buffers(int fd, const StreamOptions& options) {
    if (options.buffer_bytes == 0) return;
    const int bytes = static_cast<int>(std::min(options.buffer_bytes, 256 * kMiB));
    set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
}

void tune_tcp(int fd, const StreamOptions& options) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (options.give_up.count() > 0) give_up_after(fd, options.give_up);
}

template <typename Query>
Result<Address> address_from(Query query, std::string_view what) {
    sockaddr_storage raw{};
    socklen_t bytes = sizeof raw;
    if (query(reinterpret_cast<sockaddr*>(&raw), &bytes) != 0)
        return Status::from_errno(errno, what);
    return Address::from_raw(reinterpret_cast<sockaddr*>(&raw), bytes);
}

/// Refuses a socket that is connected to itself: repeated connects to a free ephemeral port reach
/// that.
Result<bool> refuse_oneself(int fd, const Address& address) {
    if (!address.is_ip()) return true;
    PCCL_ASSIGN_OR_RETURN(const Address mine, local_address(fd));
    if (!(mine == address)) return true;
    return Status::unavailable(concat("nobody listens at ", address.to_string()));
}

/// Returns the bytes that the kernel counts by this request of ioctl(); 0 where it does not.
std::size_t queued_bytes(int fd, unsigned long request) {
    int bytes = 0;
    if (::ioctl(fd, request, &bytes) != 0 || bytes < 0) return 0;
    return static_cast<std::size_t>(bytes);
}

Status wait_for(const Interest& interest, Deadline deadline, std::string_view what) {
    if (wait_for_any({&interest, 1}, deadline.slice()) || !deadline.passed()) return Status::ok();
    return Status::timeout(concat("the deadline passed while ", what));
}

}  // namespace

void give_up_after(int fd, std::chrono::milliseconds silence) {
    set_user_timeout(fd, silence);
    probe_when_idle(fd, silence);
}

void probe_when_idle(int fd, std::chrono::milliseconds silence) {
    const auto idle_seconds = std::max<long>(1, silence.count() / 2000);
    const auto probe_seconds = std::max<long>(1, silence.count() / 6000);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(idle_seconds));
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(probe_seconds));
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Status connect_from(int fd, const Address& source) {
    set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    const Address any_port = source.with_port(0);
    if (::bind(fd, any_port.raw(), any_port.raw_bytes()) == 0) return Status::ok();
    return Status(
        StatusCode::kUnavailable,
        Status::from_errno(errno, concat("cannot connect from ", source.ip_text())).message());
}

Status connect_through(int fd, const std::string& interface) {
    if (::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.data(),
                     static_cast<socklen_t>(interface.size())) == 0)
        return Status::ok();
    return Status(StatusCode::kUnavailable,
                  Status::from_errno(errno, concat("SO_BINDTODEVICE ", interface)).message());
}

Result<UniqueFd> make_socket(const Address& address, const StreamOptions& options) {
    UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.is_open()) return Status::from_errno(errno, "cannot create a socket");
    set_buffers(fd.get(), options);
    if (address.is_ip()) tune_tcp(fd.get(), options);
    return fd;
}

Result<UniqueFd> listen_on(const Address& address, const StreamOptions& options) {
    PCCL_ASSIGN_OR_RETURN(UniqueFd fd, make_socket(address, options));
    if (address.is_ip()) set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (address.family() == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (::bind(fd.get(), address.raw(), address.raw_bytes()) != 0 ||
        ::listen(fd.get(), kBacklog) != 0)
        return Status::from_errno(errno, concat("cannot listen at ", address.to_string()));
    return fd;
}

Result<std::optional<UniqueFd>> accept_next(int listener, const StreamOptions& options) {
    UniqueFd fd(retry_interrupted(
        [&] { return ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }));
    if (fd.is_open()) {
        tune_tcp(fd.get(), options);
        return std::optional(std::move(fd));
    }
    // Errors of a connection that died in the queue are not errors of the listener.
    const bool of_connection = errno == ECONNABORTED || errno == EPROTO || errno == ENETDOWN ||
                               errno == EHOSTUNREACH || errno == ENETUNREACH;
    if (would_block(errno) || of_connection) return std::optional<UniqueFd>();
    return Status::from_errno(errno, "cannot accept a connection");
}

Result<bool> connect_step(int fd, const Address& address) {
    if (::connect(fd, address.raw(), address.raw_bytes()) == 0 || errno == EISCONN)
        return refuse_oneself(fd, address);
    // EAGAIN: the queue of a unix listener is full.
    if (errno == EINPROGRESS || errno == EALREADY || errno == EINTR || would_block(errno))
        return false;
    return Status(
        StatusCode::kUnavailable,
        Status::from_errno(errno, concat("cannot connect to ", address.to_string())).message());
}

Result<UniqueFd> connect_to(const Address& address, Deadline deadline,
                            const StreamOptions& options) {
    PCCL_ASSIGN_OR_RETURN(UniqueFd fd, make_socket(address, options));
    while (true) {
        PCCL_ASSIGN_OR_RETURN(const bool connected, connect_step(fd.get(), address));
        if (connected) return fd;
        if (address.family() == AF_UNIX) system_clock().sleep_for(kRetryPause);
        PCCL_TRY(wait_for({.fd = fd.get(), .output = true}, deadline,
                          concat("connecting to ", address.to_string())));
    }
}

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0)
        return Status::unavailable(
            concat("cannot resolve \"", host, "\": ", ::gai_strerror(error)));
    const ScopeExit release([found] { ::freeaddrinfo(found); });
    std::vector<Address> addresses;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        auto address = Address::from_raw(entry->ai_addr, entry->ai_addrlen);
        if (address.is_ok()) addresses.push_back(address->with_port(port));
    }
    return addresses;
}

Result<Address> local_address(int fd) {
    return address_from([fd](sockaddr* raw, socklen_t* n) { return ::getsockname(fd, raw, n); },
                        "cannot read a socket's own address");
}

Result<Address> peer_address(int fd) {
    return address_from([fd](sockaddr* raw, socklen_t* n) { return ::getpeername(fd, raw, n); },
                        "cannot read the address of a socket's peer");
}

std::size_t granted_send_buffer(int fd) {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    if (::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size) != 0 || bytes < 0) return 0;
    return static_cast<std::size_t>(bytes) /
           2;  // Linux doubles the requested size for its overhead
}

std::size_t unsent_bytes(int fd) { return queued_bytes(fd, SIOCOUTQNSD); }

std::size_t unacknowledged_bytes(int fd) { return queued_bytes(fd, SIOCOUTQ); }

void notify_once_unsent_below(int fd, std::size_t bytes) {
    const std::size_t most = std::numeric_limits<int>::max();
    // Linux accepts up to the limit, and reports the socket ready at half of it.
    set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(std::min(2 * bytes, most)));
}

void acknowledge(int fd, Acknowledge when) {
    set_option(fd, IPPROTO_TCP, TCP_QUICKACK, when == Acknowledge::kAtOnce ? 1 : 0);
}

Result<std::size_t> send_some(int fd, std::span<const iovec> pieces) {
    const msghdr message = message_of(pieces);
    const auto sent =
        retry_interrupted([&] { return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL); });
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (would_block(errno)) return std::size_t{0};
    return stream_fault(errno, "cannot send");
}

Result<std::size_t> send_some(int fd, std::span<const std::byte> bytes) {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return send_some(fd, std::span(&piece, 1));
}

Result<std::size_t> receive_some(int fd, std::span<std::byte> into) {
    if (into.empty()) return std::size_t{0};
    return received_by(
        retry_interrupted([&] { return ::recv(fd, into.data(), into.size(), MSG_DONTWAIT); }));
}

Result<std::size_t> receive_some(int fd, std::span<const iovec> pieces) {
    msghdr message = message_of(pieces);
    return received_by(retry_interrupted([&] { return ::recvmsg(fd, &message, MSG_DONTWAIT); }));
}

Status send_all(int fd, std::span<const std::byte> bytes, Deadline deadline) {
    while (!bytes.empty()) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t sent, send_some(fd, bytes));
        bytes = bytes.subspan(sent);
        if (sent == 0) PCCL_TRY(wait_for({.fd = fd, .output = true}, deadline, "sending"));
    }
    return Status::ok();
}

Status receive_all(int fd, std::span<std::byte> into, Deadline deadline) {
    while (!into.empty()) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t received, receive_some(fd, into));
        into = into.subspan(received);
        if (received == 0) PCCL_TRY(wait_for({.fd = fd, .input = true}, deadline, "receiving"));
    }
    return Status::ok();
}

bool peer_has_closed(int fd) {
    std::byte next{};
    const auto received =
        retry_interrupted([&] { return ::recv(fd, &next, 1, MSG_PEEK | MSG_DONTWAIT); });
    return received == 0 || (received < 0 && !would_block(errno));
}

void shut_down(int fd) { static_cast<void>(::shutdown(fd, SHUT_RDWR)); }

void end_sending(int fd) { static_cast<void>(::shutdown(fd, SHUT_WR)); }

void abandon(int fd, std::chrono::milliseconds silence) {
    set_user_timeout(fd, silence);
    shut_down(fd);
}

bool wait_for_any(std::span<const Interest> interests, Duration longest) {
    std::vector<pollfd> polled;
    for (const Interest& interest : interests) {
        const int events = (interest.input ? POLLIN : 0) | (interest.output ? POLLOUT : 0);
        polled.push_back({.fd = interest.fd, .events = static_cast<short>(events), .revents = 0});
    }
    const Duration bounded = std::min<Duration>(longest, std::chrono::hours(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(bounded);
    const timespec timeout{static_cast<time_t>(seconds.count()),
                           static_cast<long>((bounded - seconds).count())};
    return ::ppoll(polled.data(), polled.size(), &timeout, nullptr) > 0;
}

}  // namespace pccl::sys
