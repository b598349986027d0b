// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/clock.h"

#include <thread>

namespace pccl {
namespace {

class SystemClock final : public Clock {
   public:
    [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }
    void sleep_for(Duration duration) const override { std::this_thread::sleep_for(duration); }
};

}  // namespace

const Clock& system_clock() {
    static const auto& clock = *new SystemClock;  // never destroyed: the log would outlive it
    return clock;
}

long long wall_clock_ms() {
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
}

}  // namespace pccl
