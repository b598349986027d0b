#include "csrc/transport/control/handshake_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/host.h"
#include "csrc/sys/socket/descriptors.h"
#include "csrc/transport/control/handshake_messages.h"
#include "csrc/transport/control/onlooker.h"
#include "csrc/transport/control/unix_socket.h"

namespace pccl::transport {

using namespace handshake;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr Duration kStarvedPause = std::chrono::milliseconds(200);

/// An eighth of what this process may have open, for there are other servers, and other uses.
HandshakeServer::Options within_limits(HandshakeServer::Options options) {
    constexpr std::size_t kLeast = 4;
    const std::size_t share = std::max(sys::most_descriptors() / 8, kLeast);
    options.most_pending = std::min(options.most_pending, share);
    return options;
}

/// `why`, about whoever is at the other end.
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

class ServerHandshake {
   public:
    ServerHandshake(UniqueFd fd, const HandshakeServer::Options& options)
        : options_(options), fd_(std::move(fd)), begun_(options.clock->now()) {}

    /// True when the client has proven itself and was told so.
    Result<bool> advance(HandshakeHost& host, const Secret& no_secret) {
        if (!greeted_) {
            PCCL_ASSIGN_OR_RETURN(greeted_, hello_.receive_from(fd_.get()));
            if (!greeted_) return false;
            PCCL_TRY(answer(host, no_secret));
        }
        PCCL_ASSIGN_OR_RETURN(const bool whole, client_proof_.receive_from(fd_.get()));
        if (!whole) return false;
        PCCL_TRY(judge(host));
        return true;
    }

    [[nodiscard]] Introduction introduction() const {
        const WireRequest& wire = client_proof_.message().request;
        return {.request = {.group = hello_.message().group,
                            .source = wire.source,
                            .destination = wire.destination,
                            .channel = wire.channel,
                            .group_size = wire.group_size,
                            .generation = wire.generation},
                .service = static_cast<Service>(wire.service),
                .transport = wire.transport,
                .purpose = wire.purpose};
    }
    [[nodiscard]] TimePoint begun() const { return begun_; }
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] UniqueFd take_socket() { return std::move(fd_); }

   private:
    Status answer(HandshakeHost& host, const Secret& no_secret) {
        const ClientHello& hello = hello_.message();
        if (hello.magic != kMagic)
            return Status::invalid_argument("it does not speak PCCL's protocol");
        if (hello.version != kVersion)
            return Status::invalid_argument(
                concat("it speaks version ", hello.version, " of the protocol, not ", kVersion));
        const auto known = is_of_onlooker() ? options_.onlookers : host.secret_of(hello.group);
        is_known_ = known.has_value();
        secret_ = known.value_or(no_secret);
        transcript_.hello = hello;
        PCCL_TRY(sys::fill_random(transcript_.server_nonce));
        return send_whole(fd_.get(), ServerProof{kMagic, transcript_.server_nonce,
                                                 prove(secret_, kServerLabel, transcript_)});
    }

    Status judge(HandshakeHost& host) {
        transcript_.request = client_proof_.message().request;
        const bool proven = sys::equal_in_constant_time(client_proof_.message().proof,
                                                        prove(secret_, kClientLabel, transcript_));
        const bool is_served =
            is_known_ && (is_of_onlooker() || host.serves(introduction().request));
        const bool is_service = transcript_.request.service < kServices &&
                                is_of_onlooker() == (introduction().service == Service::kStatus);
        if (proven && is_served && is_service) return send_whole(fd_.get(), Verdict::kAccepted);
        static_cast<void>(send_whole(fd_.get(), Verdict::kRefused));
        if (proven && is_served)
            return Status::invalid_argument(concat("it asks for service ",
                                                   int{transcript_.request.service},
                                                   ", which there is not, or not for it"));
        return Status::invalid_argument(
            is_known_ && !proven ? "it does not prove the secret of the group"
                                 : "it asks for a group that this process is not in, or has left");
    }

    [[nodiscard]] bool is_of_onlooker() const { return hello_.message().group == kOnlookers; }

    const HandshakeServer::Options& options_;
    UniqueFd fd_;
    TimePoint begun_;
    bool greeted_ = false;
    bool is_known_ = false;
    Secret secret_{};
    Transcript transcript_;
    Incoming<ClientHello> hello_;
    Incoming<ClientProof> client_proof_;
};

Result<std::unique_ptr<HandshakeServer>> HandshakeServer::listen(const sys::Address& address,
                                                                 const Options& options) {
    std::unique_ptr<HandshakeServer> server(new HandshakeServer(options));
    PCCL_ASSIGN_OR_RETURN(server->listener_, sys::listen_on(address, options.stream));
    PCCL_ASSIGN_OR_RETURN(server->address_, sys::local_address(server->listener_.get()));
    PCCL_TRY(server->start());
    return server;
}

HandshakeServer::HandshakeServer(const Options& options) : options_(within_limits(options)) {}
HandshakeServer::~HandshakeServer() = default;

Status HandshakeServer::start() {
    PCCL_TRY(sys::fill_random(no_secret_));
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.is_open()) return Status::from_errno(errno, "cannot create an epoll set");
    alarm_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!alarm_.is_open()) return Status::from_errno(errno, "cannot create a timer");
    PCCL_TRY(watch(alarm_.get()));
    keep_spare();
    return watch(listener_.get());
}

void HandshakeServer::keep_spare() {
    if (!spare_.is_open()) spare_.reset(::eventfd(0, EFD_CLOEXEC));
    if (spare_.is_open()) shortage_ = Status::ok();
}

Status HandshakeServer::watch(int fd) {
    epoll_event interest{.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &interest) == 0) return Status::ok();
    return Status::from_errno(errno, "cannot watch a connection");
}

void HandshakeServer::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void HandshakeServer::advance(HandshakeHost& host, const Welcome& welcome) {
    step_all(host, welcome);
    // Only so many at once, for the caller has others to look after.
    for (std::size_t round = 0; round < options_.most_pending; ++round) {
        starved_ = false;
        keep_spare();
        const std::size_t before = pending_.size();
        admit(host);
        if (pending_.size() == before) break;
        step_all(host, welcome);  // most have said hello by now
        // Who had the spare descriptor and has hung up makes way for the next.
        if (!starved_ || !pending_.empty()) break;
    }
    keep_spare();
    expire(host);
    pause_listening(is_full() || starved_);
}

void HandshakeServer::step_all(HandshakeHost& host, const Welcome& welcome) {
    std::erase_if(pending_, [&](auto& handshake) { return !step(*handshake, host, welcome); });
}

bool HandshakeServer::step(ServerHandshake& handshake, HandshakeHost& host,
                           const Welcome& welcome) {
    const auto done = handshake.advance(host, no_secret_);
    if (!done.is_ok()) {
        host.refused(options_.way, about_client(handshake.fd(), done.status()));
        return false;
    }
    if (!done.value()) return true;
    unwatch(handshake.fd());
    keep_spare();
    welcome(handshake.take_socket(), handshake.introduction());
    return false;
}

void HandshakeServer::admit(HandshakeHost& host) {
    for (std::size_t seen = 0; seen < options_.most_pending && !is_full(); ++seen) {
        auto next = accept_one();
        if (next.is_ok() && !next->has_value()) return;
        const Status fault = next.is_ok() ? let_in(std::move(**next), host) : next.status();
        if (fault.is_ok()) continue;
        starved_ = true;
        if (!std::exchange(told_, true)) host.refused(options_.way, fault);
        return;
    }
}

/// Other users of this host get no further than here: no slot, no patience.
Status HandshakeServer::let_in(UniqueFd client, HandshakeHost& host) {
    if (address_.family() == AF_UNIX && !require_same_user(client.get()).is_ok()) {
        const Status why = Status::unavailable("it runs as another user than this process");
        host.refused(options_.way, about_client(client.get(), why));
        return Status::ok();
    }
    PCCL_TRY(watch(client.get()));
    told_ = told_ && !shortage_.is_ok();
    pending_.push_back(std::make_unique<ServerHandshake>(std::move(client), options_));
    return Status::ok();
}

/// A process without descriptors still hears one peer at a time, so that it can say what it lacks.
Result<std::optional<UniqueFd>> HandshakeServer::accept_one() {
    auto next = sys::accept_next(listener_.get(), options_.stream);
    if (next.status().code() != StatusCode::kResourceExhausted) return next;
    // The kernel says so before it looks whether anybody waits.
    const sys::Interest arrival{.fd = listener_.get(), .input = true};
    if (!sys::wait_for_any({&arrival, 1}, Duration::zero())) return std::optional<UniqueFd>();
    if (!pending_.empty() || !spare_.is_open()) return next;
    shortage_ = next.status();
    spare_.reset();
    next = sys::accept_next(listener_.get(), options_.stream);
    if (!next.is_ok() || !next->has_value()) keep_spare();
    return next;
}

void HandshakeServer::expire(HandshakeHost& host) {
    const TimePoint now = options_.clock->now();
    const Duration patience =
        is_full() || starved_ ? options_.patience_when_crowded : options_.patience;
    const auto kept = std::find_if(pending_.begin(), pending_.end(), [&](const auto& handshake) {
        return now - handshake->begun() < patience;
    });
    const Status too_slow = Status::timeout("it did not finish its handshake in time");
    for (auto late = pending_.begin(); late != kept; ++late)
        host.refused(options_.way, about_client((*late)->fd(), too_slow));
    pending_.erase(pending_.begin(), kept);
    if (!pending_.empty())
        set_alarm(pending_.front()->begun() + patience - now);
    else
        set_alarm(starved_ ? kStarvedPause : Duration::zero());
}

void HandshakeServer::pause_listening(bool pause) {
    if (pause == paused_) return;
    epoll_event interest{.events = pause ? 0U : static_cast<unsigned>(EPOLLIN), .data = {}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &interest);
    paused_ = pause;
}

/// Zero turns the alarm off. Setting it also ends an alarm that rings.
void HandshakeServer::set_alarm(Duration until) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(until);
    itimerspec timer{};
    timer.it_value = {static_cast<time_t>(seconds.count()),
                      static_cast<long>((until - seconds).count())};
    ::timerfd_settime(alarm_.get(), 0, &timer, nullptr);
}

}  // namespace pccl::transport
