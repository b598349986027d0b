// A wait in slices, between which its thread looks after something else.
#pragma once

#include <optional>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"

namespace pccl {

/// How something ended. `wait(until)` waits for that, and says why not when `until` has passed;
/// `ending(said)`, a std::optional<Status>, is asked afterwards: it may have ended as the slice
/// did. When `deadline` has passed first, what `wait` said. What `between()` says, unless ok, ends
/// it.
template <typename Wait, typename Ending, typename Between>
Status wait_in_slices(Deadline deadline, Duration slice, const Wait& wait, const Ending& ending,
                      const Between& between) {
    for (;;) {
        Status said = wait(deadline.within(slice));
        if (const std::optional<Status> end = ending(said)) return *end;
        if (deadline.passed()) return said;
        PCCL_TRY(between());
    }
}

}  // namespace pccl
