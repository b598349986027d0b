// SPDX-License-Identifier: Apache-2.0

// Date and time as text, for people and files.
#pragma once

#include <string>

#include <pccl/export.h>

namespace pccl {

/// Formats milliseconds of wall_clock_ms() as "2026-11-25T21:40:03Z"; empty where that is no valid
/// time. Later times compare greater.
[[nodiscard]] PCCL_API std::string in_utc(long long milliseconds);
[[nodiscard]] PCCL_API std::string now_in_utc();

}  // namespace pccl
