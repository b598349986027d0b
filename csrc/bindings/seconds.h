// Times as Python users write them: seconds, as a number or a datetime.timedelta. The one place
// that converts them; needs the GIL, for it raises InvalidArgumentError, which names the argument.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <optional>
#include <string_view>

#include "csrc/base/clock.h"
#include "csrc/base/time_limit.h"
#include "csrc/bindings/errors.h"

namespace pccl::bindings {

inline constexpr std::string_view kTimeout = "timeout";

/// What a function that pybind11 calls takes for a time.
class Seconds {
   public:
    Seconds() = default;
    // Both implicit, as this stands for a number but for how it is read.
    Seconds(double count) : count_(count) {}    // NOLINT(google-explicit-constructor)
    operator double() const { return count_; }  // NOLINT(google-explicit-constructor)

   private:
    double count_ = 0;
};
using OptionalSeconds = std::optional<Seconds>;

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

/// Takes numbers, and what has total_seconds().
template <>
class pybind11::detail::type_caster<pccl::bindings::Seconds> {
   public:
    PYBIND11_TYPE_CASTER(pccl::bindings::Seconds, const_name("float | datetime.timedelta"));

    bool load(handle given, bool convert) {
        make_caster<double> number;
        if (number.load(given, convert)) {
            value = cast_op<double>(number);
            return true;
        }
        PyObject* const seconds = PyObject_CallMethod(given.ptr(), "total_seconds", nullptr);
        if (seconds == nullptr) {
            PyErr_Clear();
            return false;
        }
        const auto held = reinterpret_steal<object>(seconds);
        if (!number.load(held, convert)) return false;
        value = cast_op<double>(number);
        return true;
    }

    static handle cast(pccl::bindings::Seconds seconds, return_value_policy /*any*/,
                       handle /*parent*/) {
        return PyFloat_FromDouble(seconds);
    }
};
