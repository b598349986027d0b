// How much there is to verify.
#pragma once

#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"

namespace pccl::capsule {

/// What verifying takes, over all ranks of a schedule, or of several.
struct Extent {
    long long parts = 0;  // lanes, steps, slices and dependencies
    long long steps = 0;
    long long moved = 0;           // chunks, by all steps
    long long lanes_together = 0;  // of ranks with several
    long long ordered = 0;         // steps times lanes_together
    long long places = 0;          // chunks in buffers
    int channels = 0;

    Extent& operator+=(const Extent& other);
};

[[nodiscard]] Extent extent_of(const schedule::Schedule& schedule);

/// kInvalidArgument where it is more than can be verified in bounded time and memory.
[[nodiscard]] Status check_extent(const Extent& extent);
[[nodiscard]] Status check_extent(const schedule::Schedule& schedule);
/// The same of a shape alone.
[[nodiscard]] Status check_extent(const schedule::Shape& shape);

}  // namespace pccl::capsule
