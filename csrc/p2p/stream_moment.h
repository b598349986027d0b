// When kernels that write or read a memory are done with it.
#pragma once

#include <memory>

#include "csrc/base/export.h"
#include "csrc/base/status.h"

namespace pccl::transport {
class GpuMoment;
}

namespace pccl::p2p {

/// What a stream of a GPU had got at one moment; null: nothing.
using StreamMoment = std::shared_ptr<transport::GpuMoment>;

/// Of `stream` (a CUstream; null: the default one) of GPU `device`, by now. kUnsupported where this
/// process has no CUDA; kInternal, and why, while the stream is being captured.
[[nodiscard]] PCCL_API Result<StreamMoment> moment_of(void* stream, int device);

}  // namespace pccl::p2p
