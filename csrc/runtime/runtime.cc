// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/runtime.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/runtime/status_report.h"
#include "csrc/runtime/transports.h"
#include "csrc/transport/region.h"

namespace pccl::runtime {
namespace {

constexpr Duration kProbe = std::chrono::milliseconds(200);
constexpr std::size_t kMostLastWords = 64;

/// The runtime that all groups of this process share while any of them lives.
struct CurrentRuntime {
    std::mutex mutex;
    std::weak_ptr<Runtime> runtime;  // guarded by mutex
};

CurrentRuntime& current_runtime() {
    static auto* const current = [] {
        auto* const made = new CurrentRuntime;  // never destroyed
        hold_while_forking(made->mutex);
        return made;
    }();
    return *current;
}

Result<transport::TransportFlags> configured_transports() {
    auto flags = transports_named(process_config().transports);
    if (!flags.is_ok()) return flags.status().with_context("PCCL_TRANSPORTS");
    return flags;
}

/// Returns what follows "no transport leads there" where the ends offer different ones.
std::string nothing_in_common(transport::TransportFlags here, transport::TransportFlags there) {
    const auto listed = [](transport::TransportFlags flags) {
        return flags.is_empty() ? std::string("none") : flags.to_string();
    };
    return concat("; this process offers ", listed(here), ", the peer offers ", listed(there),
                  ": name a common one in transports= or PCCL_TRANSPORTS on both sides");
}

}  // namespace

Result<std::shared_ptr<Runtime>> Runtime::create(const NetworkOptions& options) {
    PCCL_ASSIGN_OR_RETURN(std::shared_ptr<transport::Waiter> waiter, transport::Waiter::create());
    PCCL_ASSIGN_OR_RETURN(auto network, make_network(options, waiter));
    return with(std::move(waiter), std::move(network));
}

Result<std::shared_ptr<Runtime>> Runtime::create(transport::TransportFlags allowed) {
    return create({.allowed = allowed,
                   .interface = process_config().socket_ifname,
                   .management = process_config().management_ifname});
}

Result<std::shared_ptr<Runtime>> Runtime::of_process() {
    PCCL_ASSIGN_OR_RETURN(const auto allowed, configured_transports());
    prepare_network(allowed);
    auto& [mutex, current] = current_runtime();
    const std::lock_guard lock(mutex);
    if (auto runtime = current.lock()) {
        if (!runtime->made_in_.is_child()) return runtime;
        return Status::unavailable(
            "this process was forked from one that uses pccl; start workers with spawn or "
            "forkserver, "
            "or fork before the first group is made");
    }
    PCCL_ASSIGN_OR_RETURN(auto runtime, create(allowed));
    current = runtime;
    return runtime;
}

Result<std::shared_ptr<Runtime>> Runtime::with(std::shared_ptr<transport::Waiter> waiter,
                                               TransportNetwork network) {
    std::shared_ptr<Runtime> runtime(new Runtime, LeaveToParent());
    runtime->waiter_ = std::move(waiter);
    runtime->network_ = std::move(network);
    PCCL_TRY(runtime->start());
    return runtime;
}

Status Runtime::start() {
    arrivals_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!arrivals_.is_open()) return Status::from_errno(errno, "cannot create an epoll set");
    stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_.is_open()) return Status::from_errno(errno, "cannot create an eventfd");
    PCCL_TRY(watch(stop_.get()));
    for (const int fd : control().poll_fds()) PCCL_TRY(watch(fd));
    PCCL_TRY(check_flight_folder());
    flight_signal_ = FlightSignal::install();
    if (flight_signal_) PCCL_TRY(watch(flight_signal_->fd()));
    acceptor_ =
        std::make_unique<BackgroundThread>("pccl-accept", [this] { accept_until_stopped(); });
    return Status::ok();
}

Runtime::~Runtime() {
    stopping_.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    work_.fetch_add(1);
    work_.notify_all();
    waiter_->wake();
}

transport::Transport* Runtime::find(transport::TransportKind kind) const {
    for (const auto& transport : transports())
        if (transport->kind() == kind) return transport.get();
    return nullptr;
}

Result<Runtime::TransportRoute> Runtime::route_to(const transport::PeerAddress& peer,
                                                  transport::TransportFlags allowed) const {
    std::string reasons;
    transport::TransportFlags here;
    transport::TransportFlags there;
    for (const auto& [kind, addresses] : peer.links) there = there | kind;
    for (const auto& transport : transports()) {
        const auto kind = transport->kind();
        if (!allowed.has(kind)) continue;
        here = here | kind;
        if (!there.has(kind)) continue;
        const Status reach = transport->reaches(peer);
        if (reach.is_ok()) return TransportRoute{transport.get(), std::move(reasons)};
        reasons += concat("; not over ", to_string(transport->kind()), ": ", reach.message());
    }
    if ((here & there).is_empty()) reasons += nothing_in_common(here, there);
    return Status::unavailable(reasons);
}

Result<Runtime::TransportRoute> Runtime::route_to(const bootstrap::Endpoint& peer,
                                                  transport::TransportFlags allowed) const {
    auto way = route_to(peer.address, allowed);
    if (way.is_ok()) return way;
    return Status(StatusCode::kUnavailable,
                  concat("no transport to rank ", peer.rank, way.status().message()), peer.rank);
}

Status Runtime::probe(const bootstrap::Endpoint& peer) const {
    Status answer = control().probe(peer.address.control, Deadline::after(kProbe));
    if (answer.is_ok()) return answer;
    return Status::peer_lost(
               peer.rank, concat("rank ", peer.rank, " (process ", peer.pid, " on ", peer.host,
                                 ") was there, and has ended or given up before all had joined: ",
                                 answer.message()))
        .with_process({.host = peer.host, .pid = peer.pid});
}

void Runtime::register_rank(const LocalRank& local_rank, const transport::Secret& secret,
                            std::weak_ptr<Participant> participant) {
    const std::lock_guard lock(mutex_);
    members_[local_rank] = {secret, std::move(participant)};
}

void Runtime::unregister_rank(const LocalRank& local_rank) {
    const std::lock_guard lock(mutex_);
    members_.erase(local_rank);
}

void Runtime::keep_answer(const LocalRank& local_rank, const transport::Secret& secret,
                          std::string answer) {
    const std::lock_guard lock(mutex_);
    if (final_answers_.size() == kMostLastWords) final_answers_.pop_front();
    final_answers_.push_back({local_rank, secret, std::move(answer)});
}

const Runtime::FinalAnswer* Runtime::final_answer_at(const LocalRank& local_rank) const {
    const auto found = std::ranges::find(final_answers_, local_rank, &FinalAnswer::local_rank);
    return found == final_answers_.end() ? nullptr : &*found;
}

void Runtime::notify() {
    work_.fetch_add(1);
    work_.notify_one();
    waiter_->wake();  // it may be in a long sleep for other participants
    const std::lock_guard lock(mutex_);
    if (progress_ == nullptr)
        progress_ = std::make_unique<BackgroundThread>("pccl-progress",
                                                       [this] { progress_until_stopped(); });
}

void Runtime::accept_until_stopped() {
    const auto liveness = waiter_->hold_liveness();
    while (!stopping_.load(std::memory_order_relaxed)) {
        epoll_event event{};
        ::epoll_wait(arrivals_.get(), &event, 1, -1);
        control().advance(*this);
        for (const auto& transport : transports()) transport->advance(*this);
        if (flight_signal_) flight_signal_->serve();
    }
}

void Runtime::progress_until_stopped() {
    transport::Backoff backoff(*waiter_);
    TimePoint idle_since{};
    while (!stopping_.load(std::memory_order_relaxed)) {
        const std::uint32_t seen = work_.load();
        const std::optional<PassResult> round = progress_busy();
        if (round && !round->moved) {
            const TimePoint now = system_clock().now();
            if (idle_since == TimePoint{}) idle_since = now;
            // A wake-up that brought no work leaves time for these checks.
            if (backoff.slept()) let_busy_look_around(now - idle_since);
            backoff.pause(round->longest_sleep);
            continue;
        }
        idle_since = {};
        backoff.reset();
        if (!round) work_.wait(seen);
    }
}

std::optional<Runtime::PassResult> Runtime::progress_busy() {
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [local_rank, member] : members_)
            if (auto participant = member.participant.lock(); participant && participant->is_busy())
                busy_.push_back(std::move(participant));
    }
    if (busy_.empty()) return std::nullopt;
    PassResult round{.moved = false, .longest_sleep = Duration::max()};
    for (const auto& participant : busy_) {
        round.moved |= participant->progress();
        round.longest_sleep = std::min(round.longest_sleep, participant->longest_sleep());
    }
    busy_.clear();
    return round;
}

void Runtime::let_busy_look_around(Duration idle) {
    for (const auto& participant : participants())
        if (participant->is_busy()) participant->look_around(idle);
}

std::vector<std::shared_ptr<Participant>> Runtime::participants() {
    std::vector<std::shared_ptr<Participant>> all;
    const std::lock_guard lock(mutex_);
    for (const auto& [local_rank, member] : members_)
        if (auto participant = member.participant.lock()) all.push_back(std::move(participant));
    return all;
}

void Runtime::note_thread() {
    static thread_local char own = 0;
    const void* first = nullptr;
    if (first_thread_.compare_exchange_strong(first, &own) || first == &own) return;
    has_several_threads_.store(true);
}

std::string Runtime::answer(const transport::LinkRequest& request) {
    if (const auto participant = participant_at(request))
        return participant->describe(request.source);
    const std::lock_guard lock(mutex_);
    const FinalAnswer* const word = final_answer_at({request.group, request.destination});
    return word == nullptr ? std::string() : word->answer;
}

std::string Runtime::status(const transport::StatusQuestion& question) {
    return status_report(participants(), question);
}

void Runtime::noticed(const transport::LinkRequest& request, const Status& reason) {
    if (const auto participant = participant_at(request)) {
        participant->receive_reason(request.source, reason);
        waiter_->wake();
    }
}

std::optional<transport::Secret> Runtime::secret_of(const transport::GroupId& group) {
    const std::lock_guard lock(mutex_);
    const auto found = members_.lower_bound({group, kNoRank});
    if (found != members_.end() && found->first.group == group) return found->second.secret;
    const auto word = std::ranges::find_if(final_answers_, [&group](const FinalAnswer& left) {
        return left.local_rank.group == group;
    });
    return word == final_answers_.end() ? std::nullopt : std::optional(word->secret);
}

bool Runtime::serves(const transport::LinkRequest& request) {
    const LocalRank local_rank{request.group, request.destination};
    const std::lock_guard lock(mutex_);
    return members_.contains(local_rank) || final_answer_at(local_rank) != nullptr;
}

std::shared_ptr<Participant> Runtime::participant_at(const LocalRank& local_rank) {
    const std::lock_guard lock(mutex_);
    const auto found = members_.find(local_rank);
    return found == members_.end() ? nullptr : found->second.participant.lock();
}

void Runtime::arrived(transport::Arrival arrival) {
    const transport::Introduction& from = arrival.introduction;
    auto* const transport = find(static_cast<transport::TransportKind>(from.transport));
    const bool shares = transport != nullptr && transport->regions() != nullptr;
    if (transport != nullptr && (shares || from.service == transport::Service::kLink))
        return transport->accept(std::move(arrival), *this);
    refused("control",
            Status::invalid_argument(concat(peer_name(from.request.source), " requests service ",
                                            static_cast<int>(from.service), " of transport ",
                                            int{from.transport}, ", which does not exist here")));
}

Status Runtime::watch(int fd) {
    epoll_event interest{.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(arrivals_.get(), EPOLL_CTL_ADD, fd, &interest) == 0) return Status::ok();
    return Status::from_errno(errno, "cannot watch for connections");
}

void Runtime::unwatch(int fd) { ::epoll_ctl(arrivals_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Runtime::accepted(const transport::LinkRequest& request,
                       std::unique_ptr<transport::RecvLink> link) {
    if (const auto participant = participant_at(request)) {
        participant->accept_link(request, std::move(link));
        waiter_->wake();
    }
}

void Runtime::accepted_region(const transport::LinkRequest& request,
                              std::unique_ptr<transport::Region> region) {
    if (const auto participant = participant_at(request)) {
        participant->accept_region(request, std::move(region));
        waiter_->wake();
    }
}

void Runtime::fell_short(const transport::LinkRequest& request, transport::TransportKind kind,
                         const Status& why) {
    const auto participant = participant_at(request);
    if (participant == nullptr) return refused(to_string(kind), why);
    participant->fall_short(
        why.with_context(request.source == kNoRank
                             ? "this session cannot take the connection of a peer"
                             : concat("rank ", request.destination,
                                      " cannot take the connection of rank ", request.source)));
    waiter_->wake();
}

void Runtime::refused(std::string_view way, const Status& why) {
    // A peer that closes the connection has rejected the proof: it wants a group that is not made
    // here yet.
    const bool left = why.code() == StatusCode::kPeerLost;
    refusals_.line(left ? LogLevel::kInfo : LogLevel::kWarning, why.process().host,
                   "refused a connection over ", way, ": ", why.message());
}

}  // namespace pccl::runtime
