// SPDX-License-Identifier: Apache-2.0

// NIXL's libraries hold an abseil of their own, whose sinks a program cannot reach without its
// headers. Their messages are on standard error: this sends those on.
#pragma once

#include "absl/log/log_sink.h"

namespace absl {

/// From then on, standard error goes to a file first; one sink at a time.
void AddLogSink(LogSink* sink);
/// Standard error is what it was.
void RemoveLogSink(LogSink* sink);

}  // namespace absl

namespace pccl_shim {

/// Sends the sink what has been written by now.
void drain_log();

}  // namespace pccl_shim
