#include "csrc/p2p/connection.h"

#include <utility>

#include "csrc/base/text.h"

namespace pccl::p2p {
namespace {

/// What begin() moves by itself: a fraction of a millisecond's work, by messages or by copies.
constexpr std::uint64_t kSmall = 1 * kMiB;
// For deadlines, and for a peer of this host that was killed: only who looks sees that.
constexpr Duration kBetweenLooks = std::chrono::seconds(1);
constexpr Duration kForever = std::chrono::hours(1);
// What has come by the end of a connection is heard in milliseconds; a peer may say more meanwhile.
constexpr Duration kLastWords = std::chrono::seconds(2);
// While others attend to a connection, one small transfer after the other: to be woken by the news
// of each would take their cores.
constexpr Duration kNap = std::chrono::microseconds(100);
// While engines of GPUs copy: nobody rings when these are done.
constexpr Duration kBetweenCopyLooks = std::chrono::microseconds(20);

/// What has ended for want of time has ended: who waits takes kTimeout for "not yet".
Status as_loss(const Status& why) {
    if (why.code() != StatusCode::kTimeout) return why;
    return Status::peer_lost(why.peer(), why.message()).with_process(why.process());
}

}  // namespace

Connection::Connection(ConnectionParts parts, ConnectionInfo peer,
                       std::unique_ptr<Approach> approach, Deadline deadline)
    : parts_(std::move(parts)),
      peer_(std::move(peer)),
      number_(approach->number()),
      is_aside_(approach->is_aside()),
      pair_(runtime::session_recorder().add_pair(parts_.session, peer_.to_string())),
      deadline_(deadline),
      mutex_(*parts_.waiter),
      approach_(std::move(approach)) {}

std::shared_ptr<Connection> Connection::make(ConnectionParts parts, ConnectionInfo peer,
                                             std::unique_ptr<Approach> approach,
                                             Deadline deadline) {
    return {new Connection(std::move(parts), std::move(peer), std::move(approach), deadline),
            LeaveToParent()};
}

Connection::~Connection() = default;

bool Connection::awaits(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return approach_ != nullptr && approach_->number() == number;
}

void Connection::welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in) {
    const std::lock_guard lock(mutex_);
    if (approach_ != nullptr) approach_->welcomed(welcome, std::move(in));
}

Status Connection::why_lost() const { return is_lost() ? why_lost_ : Status::ok(); }

std::shared_ptr<Task> Connection::begin(Order order) {
    auto task = std::make_shared<Task>(std::move(order), shared_from_this(), pair_);
    const Attendance attendance(*this);
    const std::lock_guard lock(mutex_);
    hear_first();
    if (is_lost()) {
        task->refuse(why_lost_);
        return task;
    }
    begin_locked(task);
    task->record();
    return task;
}

void Connection::begin_locked(const std::shared_ptr<Task>& task) {
    if (task->order().in_order_of) return begin_in_order(task);
    waiting_.push_back(task);
    if (task->bytes() <= kSmall)
        carry_once(task.get());
    else
        waiter().wake();
}

void Connection::hear_first() {
    const bool is_idle = is_whole() && waiting_.empty() && flying_.empty();
    // Copies need nothing of the peer but its memory, and look at that themselves.
    if (is_idle && !path_.is_direct) carry_locked(nullptr);
}

void Connection::begin_in_order(const std::shared_ptr<Task>& task) {
    const Status posted = post_in_order(task);
    if (!posted.is_ok()) task->fail(described(posted));
    task->end_posting();
    if (task->is_over()) finish(task);
    waiter().wake();  // nobody rings when engines are done
}

Status Connection::post_in_order(const std::shared_ptr<Task>& task) {
    PCCL_ASSERT(is_whole());
    std::vector<Plan::Step> steps(kOrderedBatch);
    std::vector<transport::RmaPiece> pieces;
    while (const std::size_t count = task->next(steps)) {
        pieces.clear();
        for (std::size_t i = 0; i < count; ++i) pieces.push_back(steps[i].piece);
        PCCL_TRY(link_->read_in_order(pieces, posts_, *task->order().in_order_of));
        task->posted(count, steps[count - 1].after);
        took_off(task);
    }
    return Status::ok();
}

Status Connection::say(const PeerWord& word) {
    const Attendance attendance(*this);
    const std::lock_guard lock(mutex_);
    if (is_lost()) return why_lost_;
    if (!words_.has_room())
        return described(Status::resource_exhausted(
            concat(Words::kMost, " notifications are waiting for it to take them")));
    words_.add(serialise(word), nullptr);
    carry_once(nullptr);
    return Status::ok();
}

void Connection::carry_once(const Task* awaited) {
    carry_locked(awaited);
    if (!is_at_rest()) waiter().wake();
}

bool Connection::is_at_rest() const {
    if (is_lost()) return true;
    if (!is_whole() || !waiting_.empty() || !link_->is_flushed() || may_hear_more_) return false;
    // What this process copies itself waits for nobody.
    return path_.is_direct ? flying_.empty() : !link_->has_moved() && !link_->awaits_copies();
}

bool Connection::try_carry() {
    // In this order: who attends to it looks whether it was passed over after it has ended that.
    passed_over_.store(true);
    if (attendances_.load() > 0) return false;
    passed_over_.store(false);
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() && carry_locked(nullptr);
}

bool Attendance::carry(const Task* awaited) {
    const std::unique_lock lock(connection_.mutex_, std::try_to_lock);
    return lock.owns_lock() && connection_.carry_locked(awaited);
}

void Attendance::look() {
    const std::unique_lock lock(connection_.mutex_, std::try_to_lock);
    if (lock.owns_lock()) connection_.look_locked();
}

Attendance::~Attendance() {
    connection_.attendances_.fetch_sub(1);
    if (connection_.passed_over_.exchange(false) && carry()) connection_.waiter().wake();
}

Duration Connection::longest_sleep() {
    if (is_lost()) return kForever;
    if (fades_.load(std::memory_order_relaxed)) return transport::Backoff::kSlice;
    if (attendances_.load() > 0) return nap();
    return awaits_gpu_.load(std::memory_order_relaxed) ? kBetweenCopyLooks : kBetweenLooks;
}

Duration Connection::longest_pause() const {
    return awaits_gpu_.load(std::memory_order_relaxed) ? kBetweenCopyLooks
                                                       : transport::Backoff::kSlice;
}

Duration Connection::nap() {
    const TimePoint now = system_clock().now();
    const std::uint64_t begun = begun_attendances_.load(std::memory_order_relaxed);
    if (begun != std::exchange(napped_for_, begun) && now >= nap_end_) nap_end_ = now + kNap;
    return now < nap_end_ ? kNap : kBetweenLooks;
}

void Connection::look() {
    // Not even the lock: who finds it held has its holder wake this process.
    if (attendances_.load() > 0) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) look_locked();
}

void Connection::listen() {
    const Attendance attendance(*this);
    const std::lock_guard lock(mutex_);
    carry_locked(nullptr);
    if (!is_lost()) look_locked();
}

void Connection::look_locked() {
    if (link_ == nullptr) return;
    if (link_->look().is_ok()) return;
    carry_locked(nullptr);
    if (!is_lost()) fade();
}

void Connection::fade() {
    if (!fades_.exchange(true)) waiter().wake();
}

void Connection::wind_up(const Status& reason) {
    const Attendance attendance(*this);
    const std::lock_guard lock(mutex_);
    for (const auto& task : waiting_) task->fail(described(reason));
    carry_once(nullptr);
}

bool Connection::has_unsaid() {
    const std::lock_guard lock(mutex_);
    if (is_lost()) return false;
    return !words_.is_empty() || (link_ != nullptr && !link_->is_flushed());
}

void Connection::close(const Status& reason) {
    const std::lock_guard lock(mutex_);
    if (is_lost()) return;
    hear_last_words();
    if (approach_ != nullptr) approach_->give_up(reason);
    if (link_ != nullptr) link_->abort(reason);
    lose(reason);
}

bool Connection::carry_locked(const Task* awaited) {
    if (is_lost()) return false;
    awaited_ = awaited;
    if (approach_ != nullptr) {
        arrive();
        if (!is_whole()) return false;
    }
    const bool posted = post_waiting();
    const auto moved = exchange();
    if (!moved.is_ok()) lose(moved.status());
    const bool awaits_copies = link_ != nullptr && link_->awaits_copies();
    awaits_gpu_.store(awaits_copies || awaits_stream_, std::memory_order_relaxed);
    return !moved.is_ok() || *moved || posted;
}

Result<bool> Connection::exchange() {
    PCCL_TRY(words_.send(*link_, posts_).status());
    PCCL_TRY(hear_completions());
    const bool moved = link_->has_moved();
    PCCL_ASSIGN_OR_RETURN(const bool said, words_.send(*link_, posts_));
    foresee_words();
    PCCL_ASSIGN_OR_RETURN(const bool heard, hear_words());
    return moved || said || heard || link_->has_moved();
}

void Connection::arrive() {
    auto whole = approach_->advance();
    if (whole.is_ok() && !*whole) {
        if (!deadline_.passed()) return;
        whole = approach_->late();
    }
    if (!whole.is_ok()) {
        approach_->give_up(whole.status());
        return lose(whole.status());
    }
    path_ = approach_->path();
    auto& way = path_.is_direct ? parts_.direct : parts_.by_messages;
    auto link = way->connect(approach_->take_streams());
    approach_.reset();
    if (!link.is_ok()) return lose(link.status());
    link_ = std::move(*link);
    whole_.store(true, std::memory_order_release);
    record(runtime::SessionEventKind::kConnected);
    waiter().wake();
}

bool Connection::post_waiting() {
    bool moved = false;
    while (!waiting_.empty()) {
        const std::shared_ptr<Task> task = waiting_.front();
        if (task->is_given_up()) task->fail(Status::aborted("the transfer was given up"));
        awaits_stream_ = !task->has_failed() && !task->may_begin();
        if (awaits_stream_) break;
        const auto posted = task->has_failed() ? Result<bool>(true) : post_some(task);
        if (!posted.is_ok()) task->fail(posted.status());
        if (posted.is_ok() && !*posted) break;
        moved = true;
        if (task->has_more() && !task->has_failed()) continue;
        waiting_.pop_front();
        task->end_posting();
        if (!task->has_failed() && task->has_word()) words_.add(task->order().notification, task);
        if (task->is_over()) finish(task);
    }
    return moved;
}

Result<bool> Connection::post_some(const std::shared_ptr<Task>& task) {
    if (const auto run = task->next_run()) return post_run(task, *run);
    const std::size_t count = task->next(steps_);
    if (count == 0) {
        task->posted_nothing();
        return true;
    }
    for (std::size_t i = 0; i < count; ++i) pieces_[i] = steps_[i].piece;
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken,
                          link_->post(task->order().op, std::span(pieces_).first(count), posts_));
    if (taken == 0) return false;
    task->posted(taken, steps_[taken - 1].after);
    took_off(task);
    return true;
}

Result<bool> Connection::post_run(const std::shared_ptr<Task>& task, const transport::RmaRun& run) {
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken, link_->post_run(task->order().op, run, posts_));
    if (taken == 0) return false;
    task->posted_of_run(taken);
    took_off(task);
    return true;
}

void Connection::took_off(const std::shared_ptr<Task>& task) {
    flying_.emplace_hint(flying_.end(), posts_, task);
    ++posts_;
}

Status Connection::hear_completions() {
    PCCL_ASSIGN_OR_RETURN(const std::size_t told, link_->poll(completions_));
    for (std::size_t i = 0; i < told; ++i) land(completions_[i]);
    words_.over(flying_.empty() ? posts_ : flying_.begin()->first);
    return Status::ok();
}

void Connection::land(const transport::RmaCompletion& completion) {
    const auto found = flying_.find(completion.ticket);
    PCCL_ASSERT(found != flying_.end());
    const std::shared_ptr<Task> task = std::move(found->second);
    flying_.erase(found);
    task->landed(cause_of(completion.status));
    // Words wait for no read that keeps the order of a stream: of these none is dropped.
    if (!completion.status.is_ok() && !task->order().in_order_of) words_.failed(completion.ticket);
    if (task->is_over()) finish(task);
}

/// A peer that goes ends its registrations: of the two, its going is the cause.
Status Connection::cause_of(const Status& failure) {
    if (failure.is_ok()) return failure;
    const Status gone = link_->look();
    if (gone.is_ok()) return described(failure);
    fade();
    return described(gone);
}

Result<bool> Connection::hear_words() {
    std::size_t heard = 0;
    // A peer that goes on and on keeps nobody in here, who may have a deadline.
    while (heard < kBatch && parts_.inbox->has_room_for(peer_.id.name)) {
        PCCL_ASSIGN_OR_RETURN(const bool more, hear_word());
        if (!more) break;
        ++heard;
    }
    may_hear_more_ = heard == kBatch;
    return heard > 0;
}

void Connection::foresee_words() {
    while (const auto word = link_->foresee_notification()) {
        const auto said = parse_peer_word(*word);
        if (said.is_ok()) listener_of(*said).foresee(*said);
    }
}

void Connection::hear_last_words() {
    if (link_ == nullptr) return;
    const Deadline deadline = Deadline::after(kLastWords);
    for (Result<bool> heard = true; heard.is_ok() && *heard && !deadline.passed();)
        heard = hear_word();
}

Result<bool> Connection::hear_word() {
    PCCL_ASSIGN_OR_RETURN(auto word, link_->next_notification());
    if (!word) return false;
    auto said = parse_peer_word(*word);
    if (!said.is_ok())
        return Status::peer_lost(kNoRank, concat("it said ", said.status().message()));
    if (auto* const notified = std::get_if<Notified>(&*said)) {
        parts_.inbox->put({peer_.id.name, std::move(notified->bytes)});
        waiter().wake();
    } else {
        PCCL_TRY(listener_of(*said).hear(shared_from_this(), std::move(*said)));
    }
    return true;
}

WordListener& Connection::listener_of(const PeerWord& word) const {
    const bool is_of_inquiry = std::holds_alternative<Asked>(word) ||
                               std::holds_alternative<Hailed>(word) ||
                               std::holds_alternative<Answered>(word);
    return is_of_inquiry ? *parts_.inquiries : *parts_.listener;
}

void Connection::finish(const std::shared_ptr<Task>& task) {
    if (task->order().in_order_of && !task->has_failed() && task->has_word())
        words_.add(task->order().notification, task);
    end(*task);
    if (task.get() != awaited_) waiter().wake();
}

void Connection::end(Task& task) const {
    const Plan& plan = *task.order().plan;
    task.finish(is_whole() ? way_of(path_, plan) : runtime::SessionPath());
}

void Connection::record(runtime::SessionEventKind kind, std::string text) const {
    runtime::session_recorder().add_event({.at = system_clock().now(),
                                           .kind = kind,
                                           .session = parts_.session,
                                           .peer = peer_.to_string(),
                                           .text = std::move(text)});
}

void Connection::lose(const Status& why) {
    why_lost_ = described(why);
    was_late_ = !is_whole() && why.code() == StatusCode::kTimeout;
    fade();  // whoever hears of it by a transfer does not find it among the peers
    record(runtime::SessionEventKind::kLost, why.message());
    hear_last_words();
    link_.reset();  // engines of GPUs are done with the memory of transfers before these end
    // What had landed before counts as it did.
    for (const auto& [post, task] : flying_) {
        task->landed(why_lost_);
        if (task->is_over()) end(*task);
    }
    flying_.clear();
    for (const auto& task : waiting_) {
        task->fail(why_lost_);
        task->end_posting();
        end(*task);
    }
    waiting_.clear();
    words_ = {};  // they hold their tasks, which hold this connection
    approach_.reset();
    lost_.store(true, std::memory_order_release);
    parts_.listener->lost(*this, why_lost_);
    parts_.inquiries->lost(*this, why_lost_);
    waiter().wake();
}

Status Connection::described(const Status& why) const {
    return as_loss(why).with_context(peer_.to_string()).with_process(peer_.process);
}

}  // namespace pccl::p2p
