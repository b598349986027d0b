// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/connection.h"

#include <utility>

#include "csrc/base/assert.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/host.h"
#include "csrc/transport/rma/bundle.h"

namespace pccl::p2p {
namespace {

/// Largest transfer for which begin() makes progress itself: a fraction of a millisecond, by
/// messages or by copies.
constexpr std::uint64_t kSmall = 1 * kMiB;
// Interval of checks for deadlines, and for a killed peer of this host, of which there is no
// notification.
constexpr Duration kBetweenLooks = std::chrono::seconds(1);
constexpr Duration kForever = std::chrono::hours(1);
// Limit for receiving the rest of an ended connection, which takes milliseconds; a peer may keep
// sending.
constexpr Duration kLastMessages = std::chrono::seconds(2);
// While GPU copy engines run, whose completion rings no doorbell.
constexpr Duration kBetweenCopyLooks = std::chrono::microseconds(20);

/// Converts a timeout, because kTimeout means "not yet" to waiting callers, whereas this connection
/// has ended.
Status as_loss(const Status& why) {
    if (why.code() != StatusCode::kTimeout) return why;
    return Status::peer_lost(why.peer(), why.message()).with_process(why.process());
}

}  // namespace

Connection::Connection(ConnectionParts parts, ConnectionInfo peer,
                       std::unique_ptr<ConnectionSetup> setup, Deadline deadline)
    : parts_(std::move(parts)),
      peer_(std::move(peer)),
      number_(setup->number()),
      is_fallback_(setup->is_fallback()),
      pair_(runtime::session_recorder().add_pair(parts_.session, peer_.to_string())),
      deadline_(deadline),
      mutex_(*parts_.waiter),
      setup_(std::move(setup)),
      lanes_(peer_, number_, parts_.tcp, parts_.lane_budget) {}

std::shared_ptr<Connection> Connection::make(ConnectionParts parts, ConnectionInfo peer,
                                             std::unique_ptr<ConnectionSetup> setup,
                                             Deadline deadline) {
    return {new Connection(std::move(parts), std::move(peer), std::move(setup), deadline),
            LeaveToParent()};
}

Connection::~Connection() = default;

bool Connection::awaits(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return setup_ != nullptr && setup_->number() == number;
}

void Connection::welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in) {
    const std::lock_guard lock(mutex_);
    if (setup_ != nullptr) setup_->welcomed(welcome, std::move(in));
}

void Connection::greeted(const LaneGreeting& greeting, std::unique_ptr<transport::RecvLink> in) {
    const std::lock_guard lock(mutex_);
    if (is_lost())
        in->abort(why_lost());
    else
        lanes_.arrived(greeting.lane, std::move(in), parts_.connect_timeout);
}

LaneReport Connection::lane_report() {
    const std::lock_guard lock(mutex_);
    return lanes_.report();
}

std::shared_ptr<TransferRequest> Connection::begin_transfer(TransferArgs args) {
    auto request = std::make_shared<TransferRequest>(std::move(args), shared_from_this(), pair_);
    const ProgressGuard guard(*this);
    const std::lock_guard lock(mutex_);
    drain_idle();
    if (is_lost()) {
        request->refuse(why_lost());
        return request;
    }
    begin_locked(request);
    request->record();
    return request;
}

void Connection::begin_locked(const std::shared_ptr<TransferRequest>& request) {
    if (request->args().in_order_of) return begin_in_order(request);
    wants_lanes_ |= request->bytes() >= transport::RmaBundle::kLarge;
    transfers_.add_waiting(request);
    if (request->bytes() <= kSmall)
        progress_once(request.get());
    else
        waiter().wake();
}

void Connection::drain_idle() {
    const bool is_idle = is_whole() && !transfers_.has_waiting() && !transfers_.has_in_flight();
    // Copies by this process need only the peer's memory, and check it themselves.
    if (is_idle && !route_.is_copied_here()) progress_locked(nullptr);
}

void Connection::begin_in_order(const std::shared_ptr<TransferRequest>& request) {
    PCCL_ASSERT(is_whole());
    const Status posted = transfers_.post_in_order(*link_, request);
    if (!posted.is_ok()) request->record_failure(described(posted));
    request->end_posting();
    if (request->is_over()) finish_transfer(request);
    waiter().wake();  // copy engines ring no doorbell at their end
}

Status Connection::send_message(const ControlMessage& message) {
    const ProgressGuard guard(*this);
    const std::lock_guard lock(mutex_);
    if (is_lost()) return why_lost();
    if (!messages_.has_room())
        return described(Status::resource_exhausted(
            concat(ControlQueue::kMost, " notifications are waiting for it to take them")));
    messages_.add(serialise(message), nullptr);
    progress_once(nullptr);
    return Status::ok();
}

void Connection::progress_once(const TransferRequest* awaited) {
    progress_locked(awaited);
    if (!is_at_rest()) waiter().wake();
}

bool Connection::is_at_rest() const {
    if (is_lost()) return true;
    if (!is_whole() || transfers_.has_waiting() || !link_->is_flushed() || may_receive_more_)
        return false;
    // Copies by this process need no event to continue.
    return route_.is_copied_here() ? !transfers_.has_in_flight()
                                   : !link_->has_moved() && !link_->awaits_copies();
}

bool Connection::try_progress() {
    if (guards_.yield_to_guards()) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() && progress_locked(nullptr);
}

bool ProgressGuard::progress(const TransferRequest* awaited) {
    const std::unique_lock lock(connection_.mutex_, std::try_to_lock);
    return lock.owns_lock() && connection_.progress_locked(awaited);
}

void ProgressGuard::look() {
    const std::unique_lock lock(connection_.mutex_, std::try_to_lock);
    if (lock.owns_lock()) connection_.look_locked();
}

ProgressGuard::~ProgressGuard() {
    if (connection_.guards_.remove_guard() && progress()) connection_.waiter().wake();
}

Duration Connection::longest_sleep() {
    if (is_lost()) return kForever;
    if (state_.is_half_closed()) return transport::Backoff::kSlice;
    if (guards_.are_held()) return guards_.idle_sleep(kBetweenLooks);
    return awaits_gpu_.load(std::memory_order_relaxed) ? kBetweenCopyLooks : kBetweenLooks;
}

Duration Connection::longest_pause() const {
    return awaits_gpu_.load(std::memory_order_relaxed) ? kBetweenCopyLooks
                                                       : transport::Backoff::kSlice;
}

void Connection::look() {
    // This does not even try the lock: a failed attempt would make its holder wake this process.
    if (guards_.are_held()) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) look_locked();
}

void Connection::drain() {
    const ProgressGuard guard(*this);
    const std::lock_guard lock(mutex_);
    progress_locked(nullptr);
    if (!is_lost()) look_locked();
}

void Connection::look_locked() {
    if (link_ == nullptr) return;
    if (link_->look().is_ok()) return;
    progress_locked(nullptr);
    if (!is_lost()) half_close();
}

void Connection::stop_posting(const Status& reason) {
    const ProgressGuard guard(*this);
    const std::lock_guard lock(mutex_);
    for (const auto& request : transfers_.waiting()) request->record_failure(described(reason));
    progress_once(nullptr);
}

bool Connection::has_unsent() {
    const std::lock_guard lock(mutex_);
    if (is_lost()) return false;
    return !messages_.is_empty() || (link_ != nullptr && !link_->is_flushed());
}

void Connection::close(const Status& reason) {
    const std::lock_guard lock(mutex_);
    if (is_lost()) return;
    receive_last_messages();
    if (setup_ != nullptr) setup_->give_up(reason);
    lanes_.give_up(reason);
    if (link_ != nullptr) link_->abort(reason);
    lose(reason);
}

bool Connection::progress_locked(const TransferRequest* awaited) {
    if (is_lost()) return false;
    awaited_ = awaited;
    if (setup_ != nullptr) {
        advance_setup();
        if (!is_whole()) return false;
    }
    if (wants_lanes_) lanes_.open(parts_.connect_timeout);
    lanes_.progress();
    const bool posted = post_waiting();
    const auto moved = exchange_data();
    if (!moved.is_ok()) lose(moved.status());
    const bool awaits_copies = link_ != nullptr && link_->awaits_copies();
    awaits_gpu_.store(awaits_copies || awaits_stream_, std::memory_order_relaxed);
    return !moved.is_ok() || *moved || posted;
}

Result<bool> Connection::exchange_data() {
    PCCL_TRY(messages_.send(*link_, transfers_.posts()).status());
    PCCL_TRY(poll_completions());
    const bool moved = link_->has_moved();
    PCCL_ASSIGN_OR_RETURN(const bool sent, messages_.send(*link_, transfers_.posts()));
    preview_messages();
    PCCL_ASSIGN_OR_RETURN(const bool received, receive_messages());
    return moved || sent || received || link_->has_moved();
}

void Connection::advance_setup() {
    // Before advance(): the peer closes the connection when its answer is not taken.
    const bool is_short = shortage_.is_set() && setup_->awaits_answer();
    auto whole = is_short ? Result<bool>(shortage_.get()) : setup_->advance();
    if (whole.is_ok() && !*whole) {
        if (!deadline_.passed()) return;
        whole = setup_->timeout_error();
    }
    if (!whole.is_ok()) {
        setup_->give_up(whole.status());
        return lose(whole.status());
    }
    route_ = setup_->route();
    auto link = connect_link();
    setup_.reset();
    if (!link.is_ok()) return lose(link.status());
    link_ = std::move(*link);
    state_.mark_whole();
    record(runtime::SessionEventKind::kConnected);
    waiter().wake();
}

Result<std::unique_ptr<transport::RmaLink>> Connection::connect_link() {
    if (route_.is_direct) return parts_.direct.at(route_.kind)->connect(setup_->take_streams());
    if (route_.kind != transport::TransportKind::kTcp)
        return parts_.by_messages->connect(setup_->take_streams());
    const LaneCount& count = setup_->lanes();
    if (count.lanes == 0) {
        lanes_.forbid(count.reason);
        return parts_.by_messages->connect(setup_->take_streams());
    }
    auto bundle = parts_.by_messages->connect_bundle(
        setup_->take_streams(), {.most = count.helpers, .cores = sys::usable_cores()});
    lanes_.allow(count.lanes, *bundle);
    return std::unique_ptr<transport::RmaLink>(std::move(bundle));
}

bool Connection::post_waiting() {
    bool moved = false;
    while (transfers_.has_waiting()) {
        const std::shared_ptr<TransferRequest> request = transfers_.waiting().front();
        if (request->is_given_up())
            request->record_failure(Status::aborted("the transfer was given up"));
        awaits_stream_ = !request->has_failed() && !request->may_begin();
        if (awaits_stream_) break;
        const auto posted =
            request->has_failed() ? Result<bool>(true) : transfers_.post_some(*link_, request);
        if (!posted.is_ok()) request->record_failure(posted.status());
        if (posted.is_ok() && !*posted) break;
        moved = true;
        if (request->has_more() && !request->has_failed()) continue;
        transfers_.remove_front();
        request->end_posting();
        if (!request->has_failed() && request->has_notification())
            messages_.add(request->args().notification, request);
        if (request->is_over()) finish_transfer(request);
    }
    return moved;
}

Status Connection::poll_completions() {
    PCCL_ASSIGN_OR_RETURN(const std::size_t completed, link_->poll(completions_));
    for (std::size_t i = 0; i < completed; ++i) complete_post(completions_[i]);
    messages_.end_posts_below(transfers_.first_open_post());
    return Status::ok();
}

void Connection::complete_post(const transport::RmaCompletion& completion) {
    const std::shared_ptr<TransferRequest> request = transfers_.take_post(completion.ticket);
    request->post_ended(cause_of(completion.status));
    // Messages are not ordered after reads in stream order, whose failures therefore drop no
    // messages.
    if (!completion.status.is_ok() && !request->args().in_order_of)
        messages_.fail_post(completion.ticket);
    if (request->is_over()) finish_transfer(request);
}

/// Returns the root cause of a failure: a leaving peer ends its registrations, so its end takes
/// precedence.
Status Connection::cause_of(const Status& failure) {
    if (failure.is_ok()) return failure;
    const Status gone = link_->look();
    if (gone.is_ok()) return described(failure);
    half_close();
    return described(gone);
}

Result<bool> Connection::receive_messages() {
    std::size_t received = 0;
    // The limit keeps a peer that sends continuously from holding this thread, which may have a
    // deadline.
    while (received < kBatch && parts_.inbox->has_room_for(peer_.id.name)) {
        PCCL_ASSIGN_OR_RETURN(const bool more, receive_message());
        if (!more) break;
        ++received;
    }
    may_receive_more_ = received == kBatch;
    return received > 0;
}

void Connection::preview_messages() {
    while (const auto message = link_->preview_notification()) {
        const auto sent = parse_control_message(*message);
        if (sent.is_ok()) receiver_of(*sent).preview(*sent);
    }
}

void Connection::receive_last_messages() {
    if (link_ == nullptr) return;
    const Deadline deadline = Deadline::after(kLastMessages);
    for (Result<bool> received = true; received.is_ok() && *received && !deadline.passed();)
        received = receive_message();
}

Result<bool> Connection::receive_message() {
    PCCL_ASSIGN_OR_RETURN(auto message, link_->next_notification());
    if (!message) return false;
    auto sent = parse_control_message(*message);
    if (!sent.is_ok())
        return Status::peer_lost(kNoRank, concat("protocol error: ", sent.status().message()));
    if (auto* const notified = std::get_if<Notified>(&*sent)) {
        parts_.inbox->put({peer_.id.name, std::move(notified->bytes)});
        waiter().wake();
    } else {
        PCCL_TRY(receiver_of(*sent).receive(shared_from_this(), std::move(*sent)));
    }
    return true;
}

ControlReceiver& Connection::receiver_of(const ControlMessage& message) const {
    const bool is_of_inquiry = std::holds_alternative<Query>(message) ||
                               std::holds_alternative<Ping>(message) ||
                               std::holds_alternative<Reply>(message);
    return is_of_inquiry ? *parts_.inquiries : *parts_.receiver;
}

void Connection::finish_transfer(const std::shared_ptr<TransferRequest>& request) {
    if (request->args().in_order_of && !request->has_failed() && request->has_notification())
        messages_.add(request->args().notification, request);
    end_transfer(*request);
    if (request.get() != awaited_) waiter().wake();
}

void Connection::end_transfer(TransferRequest& request) const {
    const Plan& plan = *request.args().plan;
    request.finish(is_whole() ? route_of(route_, plan) : runtime::SessionPath());
}

void Connection::record(runtime::SessionEventKind kind, std::string text) const {
    runtime::session_recorder().add_event({.at = system_clock().now(),
                                           .kind = kind,
                                           .session = parts_.session,
                                           .peer = peer_.to_string(),
                                           .text = std::move(text)});
}

void Connection::lose(const Status& why) {
    const Status loss = described(why);
    state_.set_loss(loss, !is_whole() && why.code() == StatusCode::kTimeout);
    half_close();  // before any transfer fails: its waiter must not find the connection usable
    record(runtime::SessionEventKind::kLost, why.message());
    receive_last_messages();
    lanes_.give_up(loss);
    link_.reset();  // copy engines finish with the transfers' memory before these end
    // Transfers that completed before keep their outcome.
    for (const auto& [post, request] : transfers_.in_flight()) {
        request->post_ended(loss);
        if (request->is_over()) end_transfer(*request);
    }
    transfers_.clear_in_flight();
    for (const auto& request : transfers_.waiting()) {
        request->record_failure(loss);
        request->end_posting();
        end_transfer(*request);
    }
    transfers_.clear_waiting();
    messages_ = {};  // messages_ holds requests, which hold this connection
    setup_.reset();
    state_.mark_lost();
    parts_.receiver->lost(*this, loss);
    parts_.inquiries->lost(*this, loss);
    waiter().wake();
}

Status Connection::described(const Status& why) const {
    return as_loss(why).with_context(peer_.to_string()).with_process(peer_.process);
}

}  // namespace pccl::p2p
