// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/path_health.h"

#include "csrc/sys/socket/path_counters.h"

namespace pccl::nccl {
namespace {

constexpr Duration kCheckEvery = std::chrono::milliseconds(50);
// Two transmissions without an answer take 0.6 s where the kernel's shortest time-out is 0.2 s.
constexpr unsigned kUnanswered = 2;

}  // namespace

bool PathHealth::is_due(TimePoint now) const {
    return now - moved_ >= kCheckEvery && now - checked_ >= kCheckEvery;
}

PathVerdict PathHealth::check(int socket, TimePoint now) {
    checked_ = now;
    if (sys::unanswered(socket) < kUnanswered) {
        silent_since_ = TimePoint::max();
        return PathVerdict::kWell;
    }
    if (!is_silent()) silent_since_ = now;
    return now - silent_since_ >= timeout_ ? PathVerdict::kLost : PathVerdict::kSilent;
}

}  // namespace pccl::nccl
