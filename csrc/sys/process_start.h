// When this process began, by the clock of the wall: what is older was not written by its job's
// present attempt.
#pragma once

#include <string_view>

#include "csrc/base/status.h"

namespace pccl::sys {

/// Milliseconds since the Unix epoch, to some 20 ms; now, where the kernel does not say.
[[nodiscard]] PCCL_API long long process_start_ms();

/// Seconds from boot to the start of a process, out of /proc/<pid>/stat with `ticks` a second.
/// kInvalidArgument where the text is none of that file.
[[nodiscard]] PCCL_API Result<double> start_after_boot(std::string_view stat, long ticks);

}  // namespace pccl::sys
