// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/log/wait_notice.h"

#include <algorithm>

#include "csrc/base/text/text.h"

namespace pccl {
namespace {

constexpr int kGrowth = 10;

}  // namespace

bool WaitNotice::is_due(Duration waited) {
    if (waited < kFirstNotice) return false;
    const TimePoint now = clock_.now();
    TimePoint next = next_.load();
    const Duration gap = gap_.load();
    if (now < next || !next_.compare_exchange_strong(next, now + gap)) return false;
    gap_.store(std::min<Duration>(kGrowth * gap, kLongestGap));
    return true;
}

std::string in_seconds(Duration duration) {
    return concat(std::chrono::duration_cast<std::chrono::seconds>(duration).count(), " s");
}

}  // namespace pccl
