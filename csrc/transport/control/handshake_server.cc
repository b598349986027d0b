// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/handshake_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/host.h"
#include "csrc/sys/socket/descriptors.h"
#include "csrc/transport/control/server_handshake.h"
#include "csrc/transport/control/unix_socket.h"

namespace pccl::transport {

namespace {

constexpr int kLongestQueue = 4096;  // of sys::listen_on()
constexpr Duration kWholeQueue = std::chrono::milliseconds(600);
constexpr Duration kStarvedPause = std::chrono::milliseconds(200);
constexpr Duration kShortestAlarm = std::chrono::microseconds(1);  // zero would disable it
/// Limit of handshakes in one call, because the caller has other work.
constexpr std::size_t kMostAtOnce = 256;

/// Returns options with at most an eighth of this process's descriptors, because there are other
/// servers, and other uses.
HandshakeServerOptions within_limits(HandshakeServerOptions options) {
    constexpr std::size_t kLeast = 4;
    const std::size_t share = std::max(sys::most_descriptors() / 8, kLeast);
    options.most_pending = std::min(options.most_pending, share);
    if (!options.timeout_when_crowded)
        options.timeout_when_crowded =
            kWholeQueue * static_cast<int>(options.most_pending) / kLongestQueue;
    return options;
}

/// Returns `why` with the address of the process at the other end.
Status about_client(int socket, const Status& why) {
    const auto address = sys::peer_address(socket);
    if (address.is_ok() && address->is_ip())
        return why.with_context(address->to_string()).with_process({.host = address->ip_text()});
    const auto who = sys::peer_credentials(socket);
    const std::string host = who.is_ok() ? concat("this host, user ", who->uid) : "this host";
    const std::int64_t pid = who.is_ok() ? who->pid : 0;
    return why.with_context(concat("process ", pid, " of ", host))
        .with_process({.host = host, .pid = pid});
}

}  // namespace

Result<std::unique_ptr<HandshakeServer>> HandshakeServer::listen(
    const sys::Address& address, const HandshakeServerOptions& options) {
    std::unique_ptr<HandshakeServer> server(new HandshakeServer(options));
    PCCL_ASSIGN_OR_RETURN(server->listener_, sys::listen_on(address, options.stream));
    PCCL_ASSIGN_OR_RETURN(server->address_, sys::local_address(server->listener_.get()));
    PCCL_TRY(server->start());
    return server;
}

HandshakeServer::HandshakeServer(const HandshakeServerOptions& options)
    : options_(within_limits(options)), secrets_{.onlookers = options.onlookers} {}
HandshakeServer::~HandshakeServer() = default;

Status HandshakeServer::start() {
    PCCL_TRY(sys::fill_random(secrets_.of_nobody));
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.is_open()) return Status::from_errno(errno, "cannot create an epoll set");
    alarm_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!alarm_.is_open()) return Status::from_errno(errno, "cannot create a timer");
    PCCL_TRY(watch(alarm_.get(), nullptr));
    keep_spare();
    return watch(listener_.get(), nullptr);
}

void HandshakeServer::keep_spare() {
    if (!spare_.is_open()) spare_.reset(::eventfd(0, EFD_CLOEXEC));
    if (spare_.is_open()) shortage_ = Status::ok();
}

Status HandshakeServer::watch(int fd, ServerHandshake* handshake) {
    epoll_event interest{.events = EPOLLIN, .data = {.ptr = handshake}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &interest) == 0) return Status::ok();
    return Status::from_errno(errno, "cannot watch a connection");
}

void HandshakeServer::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void HandshakeServer::advance(HandshakeHost& host, const Welcome& welcome) {
    blocked_for_.reset();
    keep_spare();
    step_ready(host, welcome);
    admit(host, welcome);
    keep_spare();
    expire(host);
    pause_accepting(blocked_for_.has_value());
}

void HandshakeServer::step_ready(HandshakeHost& host, const Welcome& welcome) {
    std::array<epoll_event, kMostAtOnce> ready;
    const int count = ::epoll_wait(epoll_.get(), ready.data(), ready.size(), 0);
    std::vector<const ServerHandshake*> over;
    for (int i = 0; i < count; ++i) {
        auto* const handshake =
            static_cast<ServerHandshake*>(ready[static_cast<std::size_t>(i)].data.ptr);
        if (handshake != nullptr && !step(*handshake, host, welcome)) over.push_back(handshake);
    }
    if (over.empty()) return;
    std::erase_if(pending_, [&](const auto& each) {
        return std::ranges::find(over, each.get()) != over.end();
    });
}

bool HandshakeServer::step(ServerHandshake& handshake, HandshakeHost& host,
                           const Welcome& welcome) {
    const auto done = handshake.advance(host);
    if (!done.is_ok()) {
        refuse(handshake, done.status(), host);
        return false;
    }
    if (!done.value()) return true;
    unwatch(handshake.fd());
    keep_spare();
    welcome(handshake.take_socket(), handshake.introduction());
    return false;
}

/// Refuses a handshake. It ends the watch first: closing does not end it while a child of fork()
/// has the descriptor, too.
void HandshakeServer::refuse(const ServerHandshake& which, const Status& why, HandshakeHost& host) {
    host.refused(options_.transport_name, about_client(which.fd(), why));
    unwatch(which.fd());
}

void HandshakeServer::admit(HandshakeHost& host, const Welcome& welcome) {
    for (std::size_t seen = 0; seen < kMostAtOnce; ++seen) {
        keep_spare();
        if (is_full() && which_to_put_off(*options_.timeout_when_crowded) == pending_.end())
            return block(*options_.timeout_when_crowded);
        auto next = accept_one(host);
        if (next.is_ok() && !next->has_value()) return;
        const Status fault =
            next.is_ok() ? let_in(std::move(**next), host, welcome) : next.status();
        if (fault.is_ok()) continue;
        block(options_.timeout_when_starved);
        if (!std::exchange(is_shortage_reported_, true))
            host.refused(options_.transport_name, fault);
        return;
    }
}

/// Admits a connection. Other users of this host are refused here: they get neither a slot nor
/// time.
Status HandshakeServer::let_in(UniqueFd client, HandshakeHost& host, const Welcome& welcome) {
    if (address_.family() == AF_UNIX && !require_same_user(client.get()).is_ok()) {
        const Status why = Status::unavailable("it runs as another user than this process");
        host.refused(options_.transport_name, about_client(client.get(), why));
        return Status::ok();
    }
    auto handshake =
        std::make_unique<ServerHandshake>(std::move(client), secrets_, options_.clock->now());
    PCCL_TRY(watch(handshake->fd(), handshake.get()));
    is_shortage_reported_ = is_shortage_reported_ && !shortage_.is_ok();
    if (!step(*handshake, host, welcome))
        return Status::ok();  // most clients have sent their
                              // hello by now
    if (is_full()) {
        if (handshake->is_silent() && oldest_silent() == pending_.end()) {
            put_off(*handshake, host);
            return Status::ok();
        }
        put_off(which_to_put_off(*options_.timeout_when_crowded), host);
    }
    pending_.push_back(std::move(handshake));
    return Status::ok();
}

/// Accepts a connection. A process without descriptors still serves one peer at a time, so that it
/// can report its shortage.
Result<std::optional<UniqueFd>> HandshakeServer::accept_one(HandshakeHost& host) {
    auto next = sys::accept_next(listener_.get(), options_.stream);
    if (next.status().code() != StatusCode::kResourceExhausted) return next;
    // The kernel reports the shortage before it checks whether a connection waits.
    const sys::Interest arrival{.fd = listener_.get(), .input = true};
    if (!sys::wait_for_any({&arrival, 1}, Duration::zero())) return std::optional<UniqueFd>();
    const auto last = which_to_put_off(options_.timeout_when_starved);
    if (last != pending_.end())
        put_off(last, host);
    else if (pending_.empty() && spare_.is_open())
        spare_.reset();
    else
        return next;
    shortage_ = next.status();
    next = sys::accept_next(listener_.get(), options_.stream);
    if (!next.is_ok() || !next->has_value()) keep_spare();
    return next;
}

HandshakeServer::Pending::iterator HandshakeServer::oldest_silent() {
    return std::ranges::find_if(pending_, [](const auto& each) { return each->is_silent(); });
}

/// Returns the oldest client that has sent nothing; if there is none, the oldest if it has taken
/// `timeout`.
HandshakeServer::Pending::iterator HandshakeServer::which_to_put_off(Duration timeout) {
    const auto silent = oldest_silent();
    if (silent != pending_.end() || pending_.empty()) return silent;
    const bool has_timed_out = options_.clock->now() - pending_.front()->begun() >= timeout;
    return has_timed_out ? pending_.begin() : pending_.end();
}

void HandshakeServer::put_off(const ServerHandshake& which, HandshakeHost& host) {
    refuse(which, Status::timeout("it was slow while others waited, and was put off"), host);
    which.put_off();
}

void HandshakeServer::put_off(Pending::iterator which, HandshakeHost& host) {
    put_off(**which, host);
    pending_.erase(which);
}

void HandshakeServer::expire(HandshakeHost& host) {
    const TimePoint now = options_.clock->now();
    const auto kept = std::ranges::find_if(pending_, [&](const auto& handshake) {
        return now - handshake->begun() < options_.timeout;
    });
    const Status too_slow = Status::timeout("it did not finish its handshake in time");
    for (auto late = pending_.begin(); late != kept; ++late) refuse(**late, too_slow, host);
    pending_.erase(pending_.begin(), kept);
    if (pending_.empty()) return set_alarm(blocked_for_ ? kStarvedPause : Duration::zero());
    const Duration timeout = std::min(options_.timeout, blocked_for_.value_or(Duration::max()));
    set_alarm(std::max(pending_.front()->begun() + timeout - now, kShortestAlarm));
}

void HandshakeServer::pause_accepting(bool pause) {
    if (pause == paused_) return;
    epoll_event interest{.events = pause ? 0U : static_cast<unsigned>(EPOLLIN), .data = {}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &interest);
    paused_ = pause;
}

/// Sets the alarm; zero disables it. Setting it also clears an expired alarm.
void HandshakeServer::set_alarm(Duration until) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(until);
    itimerspec timer{};
    timer.it_value = {static_cast<time_t>(seconds.count()),
                      static_cast<long>((until - seconds).count())};
    ::timerfd_settime(alarm_.get(), 0, &timer, nullptr);
}

}  // namespace pccl::transport
