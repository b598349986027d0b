// When kernels that write or read a memory are done with it.
#pragma once

#include <memory>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {
class GpuEvent;
}

namespace pccl::p2p {

/// Of a GPU, as CUDA numbers it in this process.
using Stream = transport::GpuCallerStream;

/// kUnsupported where this process has no CUDA, and while the stream is being captured.
[[nodiscard]] Status check_stream(const Stream& stream);

/// What a stream had got at one moment; null: nothing.
using StreamEvent = std::shared_ptr<transport::GpuEvent>;

/// Of `stream`, by now. Errors as of check_stream().
[[nodiscard]] PCCL_API Result<StreamEvent> event_of(const Stream& stream);

}  // namespace pccl::p2p
