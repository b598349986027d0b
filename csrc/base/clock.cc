// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/clock.h"

#include <array>
#include <ctime>
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

std::string in_utc(long long milliseconds) {
    const std::time_t seconds = milliseconds / 1000;
    std::tm utc{};
    std::array<char, 32> text{};
    if (::gmtime_r(&seconds, &utc) == nullptr) return {};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::string now_in_utc() { return in_utc(wall_clock_ms()); }

}  // namespace pccl
