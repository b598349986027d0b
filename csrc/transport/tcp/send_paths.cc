// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/send_paths.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::tcp {
namespace {

// Data of other paths while the slowest one is busy with one piece.
constexpr std::size_t kKeptOfPath = 4 * kMiB;
constexpr Duration kCheckPaths = std::chrono::milliseconds(50);
constexpr Duration kPumpRest = std::chrono::milliseconds(1);
constexpr Duration kAttemptStep = std::chrono::milliseconds(2);
constexpr Duration kAttemptTime = std::chrono::seconds(3);
// A short interruption ends by itself: the kernel sends again.
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(16);
// Attempts of a path that has never connected: there may be no cable.
constexpr std::uint32_t kMostFruitless = 4;

}  // namespace

std::vector<Introduction> PathsOfLink::introductions(std::size_t path,
                                                     std::uint32_t attempt) const {
    SocketPurpose socket = purpose;
    socket.path = static_cast<std::uint32_t>(path + 1);
    socket.attempt = attempt;
    std::vector<Introduction> introduced;
    for (socket.index = 0; socket.index < socket.sockets(); ++socket.index)
        introduced.push_back({.request = request,
                              .service = Service::kLink,
                              .transport = static_cast<std::uint8_t>(TransportKind::kTcp),
                              .purpose = socket.encode()});
    return introduced;
}

SendPaths::SendPaths(PathsOfLink paths, std::string peer_name, Waiter& waiter,
                     const std::shared_ptr<PathKeeper>& keeper, std::shared_ptr<PathLog> log)
    : paths_(std::move(paths)),
      peer_name_(std::move(peer_name)),
      waiter_(waiter),
      keeper_(keeper),
      log_(std::move(log)),
      watch_({.self = paths_.request.source,
              .leaver = paths_.request.destination,
              .ranks = paths_.request.group_size}) {
    for (const PathRoute& route : paths_.routes)
        states_.push_back({.route = route, .attempt = {.pause = kFirstPause}});
    const std::size_t most = std::min(kMostKept, paths_.routes.size() * kKeptOfPath);
    for (int channel = 0; channel < kChannels; ++channel)
        senders_.emplace_back(most, paths_.peer_timeout);
}

template <typename Act>
void SendPaths::for_each_socket(std::size_t path, Act act) {
    for (std::size_t i = 0; i < data_sockets(); ++i)
        act(senders_[kCollectiveChannel], path * data_sockets() + i);
    act(senders_[kMessageChannel], path);
}

Status SendPaths::take(std::size_t path, std::vector<UniqueFd> sockets) {
    const std::lock_guard lock(mutex_);
    return use(path, std::move(sockets));
}

Status SendPaths::use(std::size_t path, std::vector<UniqueFd> sockets) {
    sys::give_up_after(sockets.back().get(), paths_.peer_timeout);
    std::vector<WatchedSocket> watched;
    for (UniqueFd& socket : sockets) {
        watched.emplace_back(std::move(socket), waiter_);
        PCCL_TRY(watched.back().watch());
    }
    SendPath& state = states_[path];
    const bool begins_link = state.attempt.number == 0 && path == 0;
    const PathBegin begin;
    if (!begins_link)
        PCCL_TRY(sys::send_some(watched.back().fd(), std::as_bytes(std::span(&begin, 1))).status());
    watch_.use(path, std::move(watched.back()));
    std::size_t next = 1;  // the first one is the message channel's
    for_each_socket(path, [&](PieceSender& sender, std::size_t index) {
        const bool is_data = &sender == &senders_[kCollectiveChannel];
        sender.use(index, std::move(watched[is_data ? next++ : 0]));
    });
    if (std::exchange(state.is_silent, false))
        log_->found(state.route, paths_.request.destination);
    else if (!begins_link)
        log_->joined(state.route, paths_.request.destination);
    state.has_joined = true;
    state.attempt.pause = kFirstPause;
    return Status::ok();
}

Result<std::size_t> SendPaths::send(ChannelId channel, std::span<const Bytes> parts, Flush flush) {
    if (status_.is_set()) return status_.get();
    const std::lock_guard lock(mutex_);
    PieceSender& sender = senders_[static_cast<std::size_t>(channel)];
    auto taken = sender.send(parts, flush);
    if (!taken.is_ok()) PCCL_TRY(fail(taken.status()));
    if (taken.is_ok() && *taken > 0) {
        kick();
        return taken;
    }
    if (const Status left = watch_.look_idle(); !left.is_ok()) return status_.set(left);
    return std::size_t{0};
}

Result<bool> SendPaths::flush(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    const std::lock_guard lock(mutex_);
    const auto flushed = senders_[static_cast<std::size_t>(channel)].flush();
    if (!flushed.is_ok()) PCCL_TRY(fail(flushed.status()));
    kick();
    if (flushed.is_ok() && *flushed) return true;
    if (const Status left = watch_.look_idle(); !left.is_ok()) return status_.set(left);
    return false;
}

Status SendPaths::look() {
    const std::lock_guard lock(mutex_);
    return watch_.look();
}

std::vector<sys::NetworkPath> SendPaths::paths() {
    const std::lock_guard lock(mutex_);
    std::vector<sys::NetworkPath> found;
    for (std::size_t path = 0; path < states_.size(); ++path) {
        if (!states_[path].has_joined) continue;
        sys::NetworkPath& own = found.emplace_back();
        own.interface = states_[path].route.interface.name;
        for_each_socket(path, [&](PieceSender& sender, std::size_t index) {
            own.counters += sys::path_counters(sender.socket(index));
        });
    }
    return found;
}

void SendPaths::kick() const {
    if (const auto keeper = keeper_.lock()) keeper->kick();
}

Status SendPaths::fail(const Status& fault) {
    const Status why = watch_.explain(
        Status::peer_lost(paths_.request.destination, concat(peer_name_, ": ", fault.message())));
    return why.is_ok() ? why : status_.set(why);
}

void SendPaths::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    const std::lock_guard lock(mutex_);
    watch_.close(reason);
    for (const PieceSender& sender : senders_) {
        if (reason.code() != StatusCode::kPeerLost) {
            sender.end_stream();
            continue;
        }
        for (std::size_t i = 0; i < sender.count(); ++i)
            if (sender.socket(i) >= 0) sys::abandon(sender.socket(i), paths_.peer_timeout);
    }
}

void SendPaths::end(const std::shared_ptr<SendPaths>& own) {
    const auto keeper = keeper_.lock();
    if (!close() && keeper != nullptr) keeper->keep_until_closed(own);
}

bool SendPaths::close() {
    const std::lock_guard lock(mutex_);
    if (!status_.is_set()) {
        static_cast<void>(status_.set(Status::aborted("the link is closed")));
        for (const PieceSender& sender : senders_) sender.end_stream();
        watch_.close(status_.get());
    }
    // A socket that is closed with unread receipts drops its data.
    bool has_any = false;
    for (PieceSender& sender : senders_) {
        sender.read_receipts();
        has_any = has_any || sender.has_in_flight();
    }
    return !has_any;
}

Duration SendPaths::look_after(TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (status_.is_set()) return Duration::max();
    // A peer that has left is no matter of its paths.
    if (!watch_.look().is_ok()) return Duration::max();
    Duration next = Duration::max();
    for (PieceSender& sender : senders_) {
        sender.read_receipts();
        // Its owner finds a fault, too.
        static_cast<void>(sender.pump());
        if (sender.has_rest())
            next = std::min(next, kPumpRest);
        else if (sender.has_in_flight())
            next = std::min(next, kCheckPaths);
    }
    for (std::size_t path = 0; path < states_.size(); ++path) {
        if (!check(path, now)) next = std::min(next, connect(path, now));
        if (states_[path].is_silent) next = std::min(next, kCheckPaths);
    }
    return next;
}

bool SendPaths::any_other_answers(std::size_t path, TimePoint now) {
    for (std::size_t other = 0; other < states_.size(); ++other) {
        if (other == path || !states_[other].has_joined || states_[other].is_silent) continue;
        bool all = true;
        for_each_socket(other, [&](const PieceSender& sender, std::size_t index) {
            all = all && sender.answers(index, now);
        });
        if (all) return true;
    }
    return false;
}

bool SendPaths::check(std::size_t path, TimePoint now) {
    SendPath& state = states_[path];
    if (!state.has_joined) return false;
    bool has_ended = false;
    bool is_silent = watch_.is_silent(path);
    const bool others_answer = any_other_answers(path, now);
    for_each_socket(path, [&](PieceSender& sender, std::size_t index) {
        has_ended = has_ended || !sender.fault(index).is_ok();
        is_silent = sender.check(index, now, others_answer) != PathVerdict::kWell || is_silent;
    });
    if (is_silent != state.is_silent) set_silent(path, is_silent, now);
    return !is_silent || (!has_ended && now - state.silent_since < kFirstPause);
}

void SendPaths::set_silent(std::size_t path, bool is_silent, TimePoint now) {
    SendPath& state = states_[path];
    state.is_silent = is_silent;
    state.silent_since = now;
    if (!is_silent) state.attempt.client.reset();
    for_each_socket(path, [&](PieceSender& sender, std::size_t index) {
        sender.avoid(index, is_silent);
        static_cast<void>(sender.pump());
    });
    if (is_silent)
        log_->lost(state.route, paths_.request.destination, others(path));
    else
        log_->found(state.route, paths_.request.destination);
    waiter_.wake();
}

std::vector<const PathRoute*> SendPaths::others(std::size_t path) const {
    std::vector<const PathRoute*> routes;
    for (const SendPath& other : states_)
        if (&other != &states_[path] && other.has_joined && !other.is_silent)
            routes.push_back(&other.route);
    return routes;
}

Duration SendPaths::connect(std::size_t path, TimePoint now) {
    SendPath& state = states_[path];
    PathAttempt& attempt = state.attempt;
    if (attempt.client == nullptr) {
        if (!state.has_joined && attempt.number >= kMostFruitless) return Duration::max();
        if (now < attempt.next) return attempt.next - now;
        begin_attempt(state, path, now);
    }
    if (attempt.client == nullptr) return attempt.next - now;
    const auto accepted = attempt.client->advance();
    if (!accepted.is_ok()) {
        end_attempt(state, accepted.status());
    } else if (*accepted) {
        const auto client = std::exchange(attempt.client, nullptr);
        const Status taken = use(path, client->take_sockets());
        if (taken.is_ok()) waiter_.wake();
        return kCheckPaths;
    } else if (attempt.deadline.passed()) {
        end_attempt(state, attempt.client->timeout_error());
    }
    return attempt.client == nullptr ? std::max(attempt.next - now, kAttemptStep) : kAttemptStep;
}

void SendPaths::begin_attempt(SendPath& path, std::size_t number, TimePoint now) {
    PathAttempt& attempt = path.attempt;
    attempt.next = now + attempt.pause;
    attempt.pause = std::min(2 * attempt.pause, kLongestPause);
    ++attempt.number;
    attempt.deadline = Deadline::from(now, kAttemptTime);
    const auto introduced = paths_.introductions(number, attempt.number);
    auto client = HandshakeClient::start(
        {.address = path.route.far,
         .secret = paths_.secret,
         .stream = paths_.stream,
         .source = path.route.interface.address,
         .interface = path.route.needs_binding ? path.route.interface.name : std::string(),
         .is_one_of_several = true},
        introduced, nullptr);
    if (client.is_ok())
        attempt.client = std::move(*client);
    else
        end_attempt(path, client.status());
}

void SendPaths::end_attempt(SendPath& path, const Status& why) {
    path.attempt.client.reset();
    if (!path.has_joined) log_->failed(path.route, paths_.request.destination, why);
}

MultipathSendLink::~MultipathSendLink() { paths_->end(paths_); }

std::size_t MultipathSendLink::capacity(ChannelId /*channel*/) const {
    // Twice the least limit of a socket, and the least buffer of a receiver.
    return 257 * kKiB;
}

}  // namespace pccl::transport::tcp
