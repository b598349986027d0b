// Waits of pccl.p2p, and Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "csrc/base/clock.h"
#include "csrc/base/sliced_wait.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

/// How often a wait looks for signals.
inline constexpr Duration kSignalSlice = std::chrono::milliseconds(50);

/// Without the GIL. `wait` and `ending` as wait_in_slices() of csrc/base/sliced_wait.h has them.
/// `session` is the peer; empty: any.
template <typename Wait, typename Ending>
void wait_for_signals_too(std::optional<double> timeout, const Wait& wait, const Ending& ending,
                          std::string_view session) {
    const Deadline deadline = deadline_after(timeout);
    const Status ended = [&] {
        const pybind11::gil_scoped_release released;
        return wait_in_slices(deadline, kSignalSlice, wait, ending, &extension::check_signals);
    }();
    throw_unless_ok(ended, session);
}

/// For `ending`: of what is begun anew by each wait, whose kTimeout is of its deadline alone.
inline std::optional<Status> unless_timeout(const Status& sent) {
    return sent.code() == StatusCode::kTimeout ? std::nullopt : std::optional(sent);
}

/// Of work or a message.
template <typename Handle>
void wait_for_end(const Handle& handle, OptionalSeconds timeout) {
    const std::string& peer = handle.peer().name;
    static_cast<void>(deadline_after(timeout));  // also a wrong one of what is done is refused
    if (handle.is_complete()) return throw_unless_ok(handle.status(), peer);
    wait_for_signals_too(
        timeout, [&](Deadline deadline) { return handle.wait(deadline); },
        [&](const Status&) {
            return handle.is_complete() ? std::optional(handle.status()) : std::nullopt;
        },
        peer);
}

}  // namespace pccl::bindings
