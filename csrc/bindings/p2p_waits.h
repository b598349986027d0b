// Waits of pccl.p2p: times as Python has them, and Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <optional>

#include "csrc/base/clock.h"
#include "csrc/bindings/errors.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

/// How often a wait looks for signals.
inline constexpr Duration kSignalSlice = std::chrono::milliseconds(50);

inline Duration duration_of(double seconds) {
    constexpr double kMost = 1e9;  // beyond that: never
    if (!(seconds >= 0)) throw_status(Status::invalid_argument("a timeout is at least 0 s"));
    if (seconds > kMost) return Duration(-1);
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

inline Deadline deadline_after(std::optional<double> seconds) {
    return seconds ? Deadline::after(duration_of(*seconds)) : Deadline::never();
}

/// Without the GIL. `wait(deadline)` says how it ended, `is_over()` whether that is for good.
template <typename Wait, typename IsOver>
void wait_in_slices(std::optional<double> timeout, const Wait& wait, const IsOver& is_over) {
    const Deadline deadline = deadline_after(timeout);
    const auto carry_on = [&] {
        for (;;) {
            Status status = wait(deadline.within(kSignalSlice));
            if (is_over(status) || deadline.passed()) return status;
            PCCL_TRY(extension::check_signals());
        }
    };
    throw_unless_ok([&] {
        const pybind11::gil_scoped_release released;
        return carry_on();
    }());
}

}  // namespace pccl::bindings
