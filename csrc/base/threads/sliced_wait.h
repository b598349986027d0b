// SPDX-License-Identifier: Apache-2.0

// Wait in slices, with other work of its thread in between.
#pragma once

#include <optional>

#include <pccl/deadline.h>
#include <pccl/status.h>

namespace pccl {

/// Returns the status with which an event ended. `wait(until)` waits for the event, and returns an
/// error when `until` has passed. `ending(said)` is called afterwards, because the event may have
/// ended as the slice did; it returns a std::optional<Status>. When `deadline` passes first, the
/// result is the error of `wait`. An error of `between()` ends the wait.
template <typename Wait, typename Ending, typename Between>
Status wait_in_slices(Deadline deadline, Duration slice, const Wait& wait, const Ending& ending,
                      const Between& between) {
    for (;;) {
        Status outcome = wait(deadline.within(slice));
        if (const std::optional<Status> end = ending(outcome)) return *end;
        if (deadline.passed()) return outcome;
        PCCL_TRY(between());
    }
}

}  // namespace pccl
