// The functions of libcuda.so.1 that the library calls, found at run time.
#pragma once

#include <cuda.h>

#include "csrc/base/status.h"

namespace pccl::sys::cuda {

/// Null until load() found them. A member has the name and type of the function, less the suffix
/// that cuda.h adds for its present version.
struct Libcuda {
#define PCCL_LIBCUDA_FUNCTIONS(use)      \
    use(cuInit);                         \
    use(cuGetErrorString);               \
    use(cuDeviceGet);                    \
    use(cuDeviceGetAttribute);           \
    use(cuDeviceGetCount);               \
    use(cuDeviceGetPCIBusId);            \
    use(cuDevicePrimaryCtxRetain);       \
    use(cuCtxSetCurrent);                \
    use(cuMemGetAllocationGranularity);  \
    use(cuMemCreate);                    \
    use(cuMemRelease);                   \
    use(cuMemExportToShareableHandle);   \
    use(cuMemImportFromShareableHandle); \
    use(cuMemAddressReserve);            \
    use(cuMemAddressFree);               \
    use(cuMemMap);                       \
    use(cuMemUnmap);                     \
    use(cuMemSetAccess);                 \
    use(cuMemGetAddressRange);           \
    use(cuPointerGetAttribute);          \
    use(cuIpcGetMemHandle);              \
    use(cuIpcOpenMemHandle);             \
    use(cuIpcCloseMemHandle);            \
    use(cuMemAlloc);                     \
    use(cuMemFree);                      \
    use(cuMemHostAlloc);                 \
    use(cuMemFreeHost);                  \
    use(cuMemsetD8Async);                \
    use(cuStreamCreate);                 \
    use(cuStreamSynchronize);            \
    use(cuStreamDestroy);                \
    use(cuMemcpyAsync);                  \
    use(cuStreamIsCapturing);            \
    use(cuStreamWaitEvent);              \
    use(cuEventCreate);                  \
    use(cuEventRecord);                  \
    use(cuEventQuery);                   \
    use(cuEventDestroy);                 \
    use(cuThreadExchangeStreamCaptureMode)

#define PCCL_DECLARE(name) decltype(&::name) name = nullptr
    PCCL_LIBCUDA_FUNCTIONS(PCCL_DECLARE);
#undef PCCL_DECLARE

    /// kUnavailable where the library or one of its functions is missing.
    Status load();
    /// ok for CUDA_SUCCESS, else a Status that names `function` and the error.
    [[nodiscard]] Status check(CUresult result, const char* function) const;
};

}  // namespace pccl::sys::cuda
