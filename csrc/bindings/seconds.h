// SPDX-License-Identifier: Apache-2.0

// Times as Python users write them: seconds, as a number or a datetime.timedelta. No other file
// converts them. Requires the GIL, because errors raise InvalidArgumentError, which contains the
// argument's name.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <limits>
#include <optional>
#include <string_view>

#include <pccl/deadline.h>
#include "csrc/base/time_limit.h"
#include "csrc/bindings/errors.h"

namespace pccl::bindings {

inline constexpr std::string_view kTimeout = "timeout";

/// Time argument of a function that pybind11 calls.
class Seconds {
   public:
    Seconds() = default;
    // Both conversions are implicit, since the type represents a number and differs only in its
    // parsing.
    Seconds(double count) : count_(count) {}    // NOLINT(google-explicit-constructor)
    operator double() const { return count_; }  // NOLINT(google-explicit-constructor)

   private:
    double count_ = 0;
};
using OptionalSeconds = std::optional<Seconds>;

/// Accepts 0 s and more.
inline Duration duration_of(double seconds, std::string_view argument = kTimeout) {
    return value_or_throw(limit_of(seconds, argument));
}

/// Accepts more than 0 s.
inline Duration positive_duration_of(double seconds, std::string_view argument = kTimeout) {
    const Duration limit = duration_of(seconds, argument);
    if (seconds > 0) return limit;
    throw_status(Status::invalid_argument(concat(argument, " is 0: it must be above 0 s")));
}

/// Rounds up, so that a short time does not become 0.
inline std::chrono::milliseconds in_milliseconds(Duration limit) {
    return std::chrono::ceil<std::chrono::milliseconds>(limit);
}

/// Converts the timeout of one call; None selects the group's timeout.
inline std::optional<std::chrono::milliseconds> timeout_of(std::optional<double> seconds) {
    if (!seconds) return std::nullopt;
    return in_milliseconds(duration_of(*seconds));
}

/// Converts a timeout to a deadline; None means never.
inline Deadline deadline_after(std::optional<double> seconds) {
    return seconds ? Deadline::after(duration_of(*seconds)) : Deadline::never();
}

}  // namespace pccl::bindings

/// Accepts numbers, and objects with total_seconds().
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
        if (convert && PyLong_Check(given.ptr())) {  // too large for a double
            constexpr double kForever = std::numeric_limits<double>::infinity();
            value = reinterpret_borrow<int_>(given) < int_(0) ? -kForever : kForever;
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
