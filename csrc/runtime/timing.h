#pragma once

#include "csrc/base/clock.h"

namespace pccl::runtime {

/// A mark that record() made: when the operation passed a point.
struct Timing {
    TimePoint issued;
    TimePoint started;
    TimePoint finished;  // TimePoint{} while it runs
};

}  // namespace pccl::runtime
