// Times as Python users write them: seconds, in floating point. The one place that converts them;
// needs the GIL, for it raises InvalidArgumentError, which names the argument.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "csrc/base/clock.h"
#include "csrc/base/time_limit.h"
#include "csrc/bindings/errors.h"

namespace pccl::bindings {

inline constexpr std::string_view kTimeout = "timeout";

/// From 0 s on.
inline Duration duration_of(double seconds, std::string_view argument = kTimeout) {
    return value_or_throw(limit_of(seconds, argument));
}

/// The same, above 0 s.
inline Duration positive_duration_of(double seconds, std::string_view argument = kTimeout) {
    const Duration limit = duration_of(seconds, argument);
    if (seconds > 0) return limit;
    throw_status(Status::invalid_argument(concat(argument, " is 0: it must be above 0 s")));
}

/// Rounded up, so that a short time is not none.
inline std::chrono::milliseconds in_milliseconds(Duration limit) {
    return std::chrono::ceil<std::chrono::milliseconds>(limit);
}

/// Of one call; None is that of the group.
inline std::optional<std::chrono::milliseconds> timeout_of(std::optional<double> seconds) {
    if (!seconds) return std::nullopt;
    return in_milliseconds(duration_of(*seconds));
}

/// None is never.
inline Deadline deadline_after(std::optional<double> seconds) {
    return seconds ? Deadline::after(duration_of(*seconds)) : Deadline::never();
}

}  // namespace pccl::bindings
