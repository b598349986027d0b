// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/session_recorder.h"

#include <utility>

namespace pccl::runtime {
namespace {

constexpr auto kUnordered = std::memory_order_relaxed;

/// Accepts a literal or null.
std::string_view literal(const char* text) {
    return text == nullptr ? std::string_view() : std::string_view(text);
}

bool is_again(const SessionEvent& last, const SessionEvent& next) {
    return next.kind == SessionEventKind::kRefused && last.kind == next.kind &&
           last.session == next.session;
}

}  // namespace

SessionRecorder& session_recorder() {
    // It is never destroyed: transfers may end while the process does.
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

std::uint64_t SessionRecorder::add(const SessionTransfer& transfer) {
    return ring_.add([&transfer](Fields& fields) {
        fields.bytes.store(transfer.bytes, kUnordered);
        fields.pair.store(transfer.pair, kUnordered);
        fields.writes.store(transfer.writes, kUnordered);
        fields.outcome.store(transfer.outcome, kUnordered);
        fields.posted.store(transfer.posted, kUnordered);
        fields.ended.store(transfer.ended, kUnordered);
        fields.kind.store(transfer.path.kind.data(), kUnordered);
        fields.how.store(transfer.path.how.data(), kUnordered);
    });
}

void SessionRecorder::ended(std::uint64_t number, const Status& outcome, const SessionPath& path,
                            TimePoint now) {
    Fields* const fields = ring_.find(number);
    if (fields == nullptr) return;
    fields->outcome.store(outcome.code(), kUnordered);
    fields->kind.store(path.kind.data(), kUnordered);
    fields->how.store(path.how.data(), kUnordered);
    fields->ended.store(now, kUnordered);
}

SessionTransfer SessionRecorder::read(std::uint64_t number, const Fields& fields) {
    return {.number = number,
            .pair = fields.pair.load(kUnordered),
            .writes = fields.writes.load(kUnordered),
            .bytes = fields.bytes.load(kUnordered),
            .posted = fields.posted.load(kUnordered),
            .ended = fields.ended.load(kUnordered),
            .outcome = fields.outcome.load(kUnordered),
            .path = {.kind = literal(fields.kind.load(kUnordered)),
                     .how = literal(fields.how.load(kUnordered))}};
}

std::vector<SessionTransfer> SessionRecorder::transfers() const { return ring_.all(&read); }

std::vector<SessionEvent> SessionRecorder::events() const {
    const std::lock_guard lock(mutex_);
    return {events_.begin(), events_.end()};
}

std::vector<SessionPair> SessionRecorder::pairs() const {
    const std::lock_guard lock(mutex_);
    return {pairs_.begin(), pairs_.end()};
}

}  // namespace pccl::runtime
