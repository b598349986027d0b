// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/path_health.h"

#include "csrc/sys/socket/path_counters.h"

namespace pccl::transport::tcp {
namespace {

constexpr Duration kCheckEvery = std::chrono::milliseconds(50);
// Time that an answer may take beyond the round trip.
constexpr Duration kAnswerTime = std::chrono::milliseconds(200);
// Two transmissions without an answer take 0.6 s where the kernel's shortest time-out is 0.2 s.
constexpr unsigned kUnanswered = 2;

}  // namespace

bool PathHealth::is_due(TimePoint now) const {
    return now - moved_ >= kCheckEvery && now - checked_ >= kCheckEvery;
}

PathVerdict PathHealth::check(int socket, TimePoint now, bool others_answer) {
    is_first_ = now - checked_ > 3 * kCheckEvery;
    checked_ = now;
    if (!is_unanswered(socket, now, others_answer)) {
        silent_since_ = TimePoint::max();
        return PathVerdict::kWell;
    }
    if (!is_silent()) silent_since_ = now;
    return now - silent_since_ >= timeout_ ? PathVerdict::kLost : PathVerdict::kSilent;
}

bool PathHealth::answers(TimePoint now) const {
    return !has_in_flight_ || now - answered_ < 2 * kCheckEvery;
}

bool PathHealth::is_unanswered(int socket, TimePoint now, bool others_answer) {
    const sys::PathAnswers found = sys::path_answers(socket);
    has_in_flight_ = found.has_in_flight;
    const bool is_unknown = is_first_ && !is_silent();
    if (is_unknown || !has_in_flight_ || found.acknowledged != acknowledged_) {
        acknowledged_ = found.acknowledged;
        answered_ = now;
    }
    const bool may_be_late = is_silent() || others_answer;
    return found.unanswered >= kUnanswered ||
           (may_be_late && now - answered_ >= kAnswerTime + found.round_trip);
}

}  // namespace pccl::transport::tcp
