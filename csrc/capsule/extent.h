// SPDX-License-Identifier: Apache-2.0

// Verification effort of a schedule.
#pragma once

#include <pccl/status.h>
#include "csrc/schedule/schedule.h"

namespace pccl::capsule {

/// Size of the verification, over all ranks of one or more schedules.
struct VerificationSize {
    long long parts = 0;  // lanes, steps, slices and dependencies
    long long steps = 0;
    long long moved = 0;           // chunks, summed over all steps
    long long lanes_together = 0;  // lanes of ranks with several lanes
    long long ordered = 0;         // steps times lanes_together
    long long places = 0;          // chunks in buffers
    int channels = 0;

    VerificationSize& operator+=(const VerificationSize& other);
};

[[nodiscard]] VerificationSize extent_of(const schedule::Schedule& schedule);

/// Checks that verification takes bounded time and memory; kInvalidArgument if not.
[[nodiscard]] Status check_extent(const VerificationSize& extent);
[[nodiscard]] Status check_extent(const schedule::Schedule& schedule);
/// Checks a shape alone.
[[nodiscard]] Status check_extent(const schedule::Shape& shape);

}  // namespace pccl::capsule
