// SPDX-License-Identifier: Apache-2.0

// Clocks and times as text: clock.cc is the only file that reads a clock or sleeps. ManualClock
// (tests/fakes/loopback) replaces the system's in tests.
#pragma once

#include <string>

#include <pccl/deadline.h>
#include <pccl/export.h>

namespace pccl {

/// Returns milliseconds since the Unix epoch, for records that people read.
[[nodiscard]] PCCL_API long long wall_clock_ms();

/// Formats milliseconds of wall_clock_ms() as "2026-11-25T21:40:03Z"; empty where that is no valid
/// time. Later times compare greater.
[[nodiscard]] PCCL_API std::string in_utc(long long milliseconds);
[[nodiscard]] PCCL_API std::string now_in_utc();

}  // namespace pccl
