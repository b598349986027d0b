// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/utc.h"

#include <array>
#include <ctime>

#include "csrc/base/clock.h"

namespace pccl {

std::string in_utc(long long milliseconds) {
    const std::time_t seconds = milliseconds / 1000;
    std::tm utc{};
    std::array<char, 32> text{};
    if (::gmtime_r(&seconds, &utc) == nullptr) return {};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::string now_in_utc() { return in_utc(wall_clock_ms()); }

}  // namespace pccl
