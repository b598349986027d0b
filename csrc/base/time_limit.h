// SPDX-License-Identifier: Apache-2.0

// Limits of time as users write them: numbers of seconds, of any size.
#pragma once

#include <chrono>
#include <string_view>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/text/text.h"

namespace pccl {

/// No limit: 292 years, which Deadline treats as never. It is the longest limit: whole milliseconds
/// that fit into a Duration.
inline constexpr auto kNoLimit = std::chrono::floor<std::chrono::milliseconds>(Duration::max());

/// Converts seconds; kNoLimit for infinity, and for values that do not fit. kInvalidArgument names
/// `argument` where the number is negative or NaN.
[[nodiscard]] inline Result<Duration> limit_of(double seconds, std::string_view argument) {
    using Seconds = std::chrono::duration<double>;
    if (!(seconds >= 0))
        return Status::invalid_argument(concat(argument, " is ", seconds,
                                               ": give seconds from 0 on, or infinity for no "
                                               "limit"));
    if (Seconds(seconds) >= Seconds(kNoLimit)) return Duration(kNoLimit);
    return std::chrono::duration_cast<Duration>(Seconds(seconds));
}

}  // namespace pccl
