// SPDX-License-Identifier: Apache-2.0

// Waits of pccl.p2p that Ctrl-C interrupts.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <pccl/deadline.h>
#include "csrc/base/threads/sliced_wait.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/extension/gil.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

/// Interval at which a wait checks for signals.
inline constexpr Duration kSignalSlice = std::chrono::milliseconds(50);

/// Waits without the GIL. `wait` and `ending` are those of wait_in_slices() in
/// csrc/base/threads/sliced_wait.h. `session` is the peer; empty: any.
template <typename Wait, typename Ending>
void wait_for_signals_too(std::optional<double> timeout, const Wait& wait, const Ending& ending,
                          std::string_view session) {
    const Deadline deadline = deadline_after(timeout);
    const Status ended = [&] {
        const extension::ReleasedGil released;
        return wait_in_slices(deadline, kSignalSlice, wait, ending, &extension::check_signals);
    }();
    throw_unless_ok(ended, session);
}

/// Returns the outcome unless it is kTimeout. An `ending` uses it where each wait begins anew, so
/// that kTimeout concerns its own deadline only.
inline std::optional<Status> unless_timeout(const Status& sent) {
    return sent.code() == StatusCode::kTimeout ? std::nullopt : std::optional(sent);
}

/// Waits for a work or a message.
template <typename Handle>
void wait_for_end(const Handle& handle, OptionalSeconds timeout) {
    const std::string& peer = handle.peer().name;
    static_cast<void>(deadline_after(timeout));  // rejects a wrong timeout of a finished one, too
    if (handle.is_complete()) return throw_unless_ok(handle.status(), peer);
    wait_for_signals_too(
        timeout, [&](Deadline deadline) { return handle.wait(deadline); },
        [&](const Status&) {
            return handle.is_complete() ? std::optional(handle.status()) : std::nullopt;
        },
        peer);
}

}  // namespace pccl::bindings
