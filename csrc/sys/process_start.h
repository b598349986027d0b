// SPDX-License-Identifier: Apache-2.0

// Start time of this process by the wall clock: older files are from an earlier attempt of its job.
#pragma once

#include <string_view>

#include <pccl/status.h>

namespace pccl::sys {

/// Returns milliseconds since the Unix epoch, accurate to some 20 ms; the present time where the
/// kernel reports none.
[[nodiscard]] PCCL_API long long process_start_ms();

/// Returns the seconds from boot to the start of a process, from /proc/<pid>/stat with `ticks` a
/// second. kInvalidArgument where the text has another format.
[[nodiscard]] PCCL_API Result<double> start_after_boot(std::string_view stat, long ticks);

}  // namespace pccl::sys
