// SPDX-License-Identifier: Apache-2.0

// Functions of libcuda.so.1 that the library calls, found at run time.
#pragma once

#include <cuda.h>

#include <pccl/status.h>

namespace pccl::sys::cuda {

/// Members are null until load() finds them. A member has the name and type of the function,
/// without the version suffix that cuda.h adds.
struct Libcuda {
#define PCCL_LIBCUDA_FUNCTIONS(use)      \
    use(cuInit);                         \
    use(cuGetErrorString);               \
    use(cuDeviceGet);                    \
    use(cuDeviceGetAttribute);           \
    use(cuDeviceGetCount);               \
    use(cuDeviceGetPCIBusId);            \
    use(cuDeviceGetUuid);                \
    use(cuDevicePrimaryCtxRetain);       \
    use(cuCtxSetCurrent);                \
    use(cuCtxPushCurrent);               \
    use(cuCtxPopCurrent);                \
    use(cuCtxEnablePeerAccess);          \
    use(cuDeviceCanAccessPeer);          \
    use(cuDeviceGetP2PAttribute);        \
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
    use(cuMemGetHandleForAddressRange);  \
    use(cuFlushGPUDirectRDMAWrites);     \
    use(cuPointerGetAttribute);          \
    use(cuIpcGetMemHandle);              \
    use(cuIpcOpenMemHandle);             \
    use(cuIpcCloseMemHandle);            \
    use(cuMemAlloc);                     \
    use(cuMemFree);                      \
    use(cuMemHostAlloc);                 \
    use(cuMemFreeHost);                  \
    use(cuMemHostRegister);              \
    use(cuMemHostUnregister);            \
    use(cuMemHostGetDevicePointer);      \
    use(cuMemsetD8Async);                \
    use(cuStreamCreate);                 \
    use(cuStreamSynchronize);            \
    use(cuStreamDestroy);                \
    use(cuMemcpyAsync);                  \
    use(cuMemcpy2DAsync);                \
    use(cuStreamWaitEvent);              \
    use(cuEventCreate);                  \
    use(cuEventRecord);                  \
    use(cuGraphAddEventRecordNode);      \
    use(cuEventQuery);                   \
    use(cuEventDestroy);                 \
    use(cuThreadExchangeStreamCaptureMode)

#define PCCL_DECLARE(name) decltype(&::name) name = nullptr
    // NOLINTNEXTLINE(readability-identifier-naming): the library's
    PCCL_LIBCUDA_FUNCTIONS(PCCL_DECLARE);
#undef PCCL_DECLARE

    // The version of drivers since CUDA 11.3. cuda.h declares only later ones, which fewer drivers
    // have.
    CUresult (*capture_info)(CUstream, CUstreamCaptureStatus*, cuuint64_t* id, CUgraph*,
                             const CUgraphNode** last, size_t*) = nullptr;
    using ChangeEdges = CUresult (*)(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                     size_t);
    ChangeEdges add_dependencies = nullptr;
    ChangeEdges remove_dependencies = nullptr;

#if CUDA_VERSION >= 12080
    // The version of drivers of CUDA 13 and of 12.8; null where neither is available.
    CUresult (*copy_batch)(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                           CUmemcpyAttributes*, size_t* first_of_attributes, size_t attributes,
                           CUstream) = nullptr;
    CUresult (*copy_batch_of_12)(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                 CUmemcpyAttributes*, size_t* first_of_attributes,
                                 size_t attributes, size_t* failed, CUstream) = nullptr;
#endif

    /// Loads the functions. kUnavailable where the library or one of them is missing.
    Status load();
    /// Returns ok for CUDA_SUCCESS, otherwise a Status that names `function` and the error.
    [[nodiscard]] Status check(CUresult result, const char* function) const;
};

}  // namespace pccl::sys::cuda
