// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/stream_event.h"

#include "csrc/sys/cuda/on_device.h"
#include "csrc/transport/rma/gpu_memory.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::p2p {

Status check_stream(const Stream& stream) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, transport::gpu_driver());
    const sys::cuda::OnDevice on(*driver, stream.device);
    PCCL_TRY(on.status());
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t graph, driver->capture_of(stream.stream));
    if (graph == 0) return Status::ok();
    return Status::unsupported(
        "the stream is being captured: a graph would replay what a transfer does once");
}

Result<StreamEvent> event_of(const Stream& stream) {
    PCCL_TRY(check_stream(stream));
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, transport::gpu_driver());
    return transport::GpuEvent::of(*driver, stream);
}

}  // namespace pccl::p2p
