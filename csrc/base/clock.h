// SPDX-License-Identifier: Apache-2.0

// Clocks: clock.cc is the only file that reads a clock or sleeps. ManualClock
// (tests/fakes/loopback) replaces the system's in tests.
#pragma once

#include <pccl/deadline.h>

namespace pccl {

/// Returns milliseconds since the Unix epoch, for records that people read.
[[nodiscard]] PCCL_API long long wall_clock_ms();

}  // namespace pccl
