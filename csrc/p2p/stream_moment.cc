#include "csrc/p2p/stream_moment.h"

#include "csrc/sys/cuda/on_device.h"
#include "csrc/transport/rma/gpu_memory.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::p2p {

Result<StreamMoment> moment_of(void* stream, int device) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, transport::gpu_driver());
    const sys::cuda::OnDevice on(*driver, device);
    PCCL_TRY(on.status());
    PCCL_ASSIGN_OR_RETURN(const sys::cuda::Event event, driver->record(stream));
    return std::make_shared<transport::GpuMoment>(*driver, device, event);
}

}  // namespace pccl::p2p
