// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "csrc/base/clock.h"

namespace pccl::runtime {

/// Points in time at which an operation was issued, started and finished, as Event::record()
/// returns them.
struct Timing {
    TimePoint issued;
    TimePoint started;
    TimePoint finished;  // TimePoint{} while it runs
};

}  // namespace pccl::runtime
