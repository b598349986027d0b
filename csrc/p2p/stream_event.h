// SPDX-License-Identifier: Apache-2.0

// Events of CUDA streams, which order transfers after kernels that write or read their memory.
#pragma once

#include <memory>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/transport/rma.h"

namespace pccl::transport {
class GpuEvent;
}

namespace pccl::p2p {

/// CUDA stream of a GPU of this process.
using Stream = transport::GpuCallerStream;

/// Returns kUnsupported where this process has no CUDA, and while the stream is being captured.
[[nodiscard]] Status check_stream(const Stream& stream);

/// Event of a stream; null: nothing to wait for.
using StreamEvent = std::shared_ptr<transport::GpuEvent>;

/// Records an event after the work that `stream` has got so far. Errors are those of
/// check_stream().
[[nodiscard]] PCCL_API Result<StreamEvent> event_of(const Stream& stream);

}  // namespace pccl::p2p
