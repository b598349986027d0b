// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "csrc/base/text/text.h"
#include "csrc/sys/cuda/libcuda.h"
#include "csrc/sys/library.h"

namespace pccl::sys::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

template <typename Function>
Status find(void* library, const char* name, Function& function) {
    if (find_function(library, name, function)) return Status::ok();
    return Status::unavailable(concat(kLibrary, " has no ", name, ": the driver is too old"));
}

StatusCode code_of(CUresult result) {
    switch (result) {
        case CUDA_ERROR_INVALID_VALUE:
        case CUDA_ERROR_INVALID_DEVICE:
        case CUDA_ERROR_INVALID_HANDLE:
            return StatusCode::kInvalidArgument;
        case CUDA_ERROR_OUT_OF_MEMORY:
            return StatusCode::kResourceExhausted;
        case CUDA_ERROR_NOT_SUPPORTED:
        case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
            return StatusCode::kUnsupported;
        case CUDA_ERROR_NO_DEVICE:
        case CUDA_ERROR_NOT_INITIALIZED:
        case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        case CUDA_ERROR_DEVICE_UNAVAILABLE:
            return StatusCode::kUnavailable;
        default:
            return StatusCode::kInternal;
    }
}

}  // namespace

Status Libcuda::load() {
    // The library is never closed: the driver does not survive that.
    void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return Status::unavailable(concat("no NVIDIA driver on this machine: ", ::dlerror()));
// cuda.h renames some functions to their present version: the macro expands the name before it
// quotes it.
#define PCCL_QUOTE_EXPANDED(name) #name
#define PCCL_QUOTE(name) PCCL_QUOTE_EXPANDED(name)
#define PCCL_FIND(name) PCCL_TRY(find(library, PCCL_QUOTE(name), this->name))
    PCCL_LIBCUDA_FUNCTIONS(PCCL_FIND);
    PCCL_TRY(find(library, "cuStreamGetCaptureInfo_v2", capture_info));
    PCCL_TRY(find(library, "cuGraphAddDependencies", add_dependencies));
    PCCL_TRY(find(library, "cuGraphRemoveDependencies", remove_dependencies));
#if CUDA_VERSION >= 12080
    find_function(library, "cuMemcpyBatchAsync_v2", copy_batch);
    find_function(library, "cuMemcpyBatchAsync", copy_batch_of_12);
#endif
#undef PCCL_FIND
#undef PCCL_QUOTE
#undef PCCL_QUOTE_EXPANDED
    return Status::ok();
}

Status Libcuda::check(CUresult result, const char* function) const {
    if (result == CUDA_SUCCESS) return Status::ok();
    const char* reason = nullptr;
    if (cuGetErrorString == nullptr || cuGetErrorString(result, &reason) != CUDA_SUCCESS)
        reason = "unknown error";
    return {code_of(result), concat(function, ": ", reason, " (", static_cast<int>(result), ")")};
}

}  // namespace pccl::sys::cuda
