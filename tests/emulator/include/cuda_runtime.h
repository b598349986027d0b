// SPDX-License-Identifier: Apache-2.0

// Stands in for CUDA's header of this name where kernels are compiled for the emulated GPU: what
// kernels use of CUDA C++, and how they are launched.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/emulator/gpu.h"

#undef __shared__
#define __shared__ static thread_local  // a block is a thread
#define __noinline__  // empty also where the standard library has it as an attribute
#define __launch_bounds__(...)

extern thread_local uint3 threadIdx;
extern thread_local uint3 blockIdx;
extern thread_local dim3 blockDim;
extern thread_local dim3 gridDim;

using std::min;

inline void __syncthreads() { static_cast<void>(pccl::emulator::meet(true)); }
inline int __syncthreads_and(int reported) { return pccl::emulator::meet(reported != 0) ? 1 : 0; }

inline void __syncwarp() { static_cast<void>(pccl::emulator::meet_warp(true)); }
inline int __all_sync(unsigned, int reported) {
    return pccl::emulator::meet_warp(reported != 0) ? 1 : 0;
}
inline int __any_sync(unsigned, int reported) {
    return pccl::emulator::meet_warp(reported == 0) ? 0 : 1;
}

/// The threads of a warp are never in step here, but where they meet.
inline unsigned __activemask() { return 1U << (threadIdx.x % 32); }
inline int __ffs(unsigned mask) { return __builtin_ffs(static_cast<int>(mask)); }

inline void __nanosleep(unsigned) { pccl::emulator::yield(); }

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline std::uint32_t atomicAdd(std::uint32_t* at, std::uint32_t term) {
    return __atomic_fetch_add(at, term, __ATOMIC_SEQ_CST);
}
inline std::uint32_t atomicCAS(std::uint32_t* at, std::uint32_t expected, std::uint32_t wanted) {
    __atomic_compare_exchange_n(at, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

template <typename Arguments>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, void (*)(Arguments)) {
    return cudaSuccess;
}

/// The kernel has ended on return. An error where it does not await the launch ahead.
template <typename Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Arguments),
                               const Arguments& arguments) {
    const bool has_awaited =
        pccl::emulator::run_grid(config->gridDim.x, config->blockDim.x, [&] { kernel(arguments); });
    return has_awaited ? cudaSuccess : cudaErrorLaunchFailure;
}
