#include "csrc/runtime/flight/session_recorder.h"

#include <algorithm>
#include <utility>

namespace pccl::runtime {
namespace {

constexpr auto kUnordered = std::memory_order_relaxed;

/// Of a literal, or none.
std::string_view literal(const char* text) {
    return text == nullptr ? std::string_view() : std::string_view(text);
}

bool is_again(const SessionEvent& last, const SessionEvent& next) {
    return next.kind == SessionEventKind::kRefused && last.kind == next.kind &&
           last.session == next.session;
}

}  // namespace

SessionRecorder& session_recorder() {
    // Never destroyed: transfers may end while the process does.
    static auto* const recorder = new SessionRecorder;
    return *recorder;
}

std::uint32_t SessionRecorder::add_pair(std::string session, std::string peer) {
    const std::lock_guard lock(mutex_);
    pairs_.push_back({++last_pair_, std::move(session), std::move(peer)});
    if (pairs_.size() > kPairs) pairs_.pop_front();
    return last_pair_;
}

void SessionRecorder::add_event(SessionEvent event) {
    const std::lock_guard lock(mutex_);
    if (!events_.empty() && is_again(events_.back(), event)) {
        event.times += events_.back().times;
        events_.pop_back();
    }
    events_.push_back(std::move(event));
    if (events_.size() > kEvents) events_.pop_front();
}

std::uint64_t SessionRecorder::posted(std::uint32_t pair, bool writes, std::uint64_t bytes,
                                      TimePoint now) {
    const std::uint64_t number = last_.fetch_add(1, kUnordered) + 1;
    Slot& slot = slots_[number % kTransfers];
    slot.number.store(0, kUnordered);
    std::atomic_thread_fence(std::memory_order_release);
    slot.bytes.store(bytes, kUnordered);
    slot.pair.store(pair, kUnordered);
    slot.writes.store(writes, kUnordered);
    slot.outcome.store(StatusCode::kOk, kUnordered);
    slot.posted.store(now, kUnordered);
    slot.ended.store({}, kUnordered);
    slot.kind.store(nullptr, kUnordered);
    slot.how.store(nullptr, kUnordered);
    slot.number.store(number, std::memory_order_release);
    return number;
}

void SessionRecorder::ended(std::uint64_t number, const Status& outcome, const SessionPath& path,
                            TimePoint now) {
    Slot& slot = slots_[number % kTransfers];
    if (slot.number.load(kUnordered) != number) return;  // younger ones are there
    slot.outcome.store(outcome.code(), kUnordered);
    slot.kind.store(path.kind.data(), kUnordered);
    slot.how.store(path.how.data(), kUnordered);
    slot.ended.store(now, kUnordered);
}

SessionTransfer SessionRecorder::read(const Slot& slot) {
    SessionTransfer transfer{.number = slot.number.load(std::memory_order_acquire),
                             .pair = slot.pair.load(kUnordered),
                             .writes = slot.writes.load(kUnordered),
                             .bytes = slot.bytes.load(kUnordered),
                             .posted = slot.posted.load(kUnordered),
                             .ended = slot.ended.load(kUnordered),
                             .outcome = slot.outcome.load(kUnordered),
                             .path = {.kind = literal(slot.kind.load(kUnordered)),
                                      .how = literal(slot.how.load(kUnordered))}};
    std::atomic_thread_fence(std::memory_order_acquire);
    // Overwritten meanwhile: none.
    if (slot.number.load(kUnordered) != transfer.number) transfer.number = 0;
    return transfer;
}

std::vector<SessionTransfer> SessionRecorder::transfers() const {
    std::vector<SessionTransfer> transfers;
    for (const Slot& slot : slots_)
        if (const SessionTransfer each = read(slot); each.number != 0) transfers.push_back(each);
    std::ranges::sort(transfers, {}, &SessionTransfer::number);
    return transfers;
}

std::vector<SessionEvent> SessionRecorder::events() const {
    const std::lock_guard lock(mutex_);
    return {events_.begin(), events_.end()};
}

std::vector<SessionPair> SessionRecorder::pairs() const {
    const std::lock_guard lock(mutex_);
    return {pairs_.begin(), pairs_.end()};
}

}  // namespace pccl::runtime
