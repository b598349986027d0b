// SPDX-License-Identifier: Apache-2.0

// Dispatch from run-time element types and operators to compile-time reductions.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "csrc/base/text/text.h"
#include "csrc/kernels/device/reduce.cuh"
#include "csrc/kernels/launch.h"

namespace pccl::kernels {

inline Status check_cuda(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return Status::ok();
    return Status::internal(concat(what, cudaGetErrorString(error)));
}

// Whether all target GPUs of this build support programmatic dependent launch, also in graphs.
#if defined(__CUDA_ARCH_LIST__) && CUDART_VERSION >= 12030
inline constexpr bool kLaunchesOverlap = std::min({__CUDA_ARCH_LIST__}) >= 900;
#else
inline constexpr bool kLaunchesOverlap = false;
#endif

/// Most bytes of kernel parameters.
inline constexpr std::size_t kMostParameters = CUDART_VERSION >= 12010 ? 32764 : 4096;

/// Launches `kernel` with `arguments` in the plan's shape. It may start before the previous launch
/// has ended, so it begins with an EpochScope or another await_launch_ahead().
template <typename Arguments>
Status launch_kernel(void (*kernel)(Arguments), const Arguments& arguments, const LaunchPlan& plan,
                     Stream stream) {
    static_assert(sizeof(Arguments) <= kMostParameters, "the parameters of a kernel are too large");
    if (plan.blocks == 0) {
        cudaFuncAttributes unused{};
        return check_cuda(cudaFuncGetAttributes(&unused, kernel), "a kernel was not loaded: ");
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(plan.blocks));
    config.blockDim = dim3(static_cast<unsigned>(plan.threads));
    config.stream = static_cast<cudaStream_t>(stream);
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &overlap;
    config.numAttrs = kLaunchesOverlap ? 1 : 0;
    return check_cuda(cudaLaunchKernelEx(&config, kernel, arguments),
                      "a kernel was not launched: ");
}

/// Parameters of kernels that move elements.
struct MoveArguments {
    abi::DeviceTeam team;
    abi::PeerPointers peer_pointers;
    BlockPointers blocks;
    std::int32_t root;
};

inline Status launch_move(void (*kernel)(MoveArguments), const Launch& launch, Stream stream) {
    return launch_kernel(kernel, {launch.team, launch.peer_pointers, launch.blocks, launch.root},
                         launch.plan, stream);
}

/// Calls body(reduction) for `kType`, whose elements have type T.
template <DataType kType, typename T, typename Request, typename Body>
Status with_type(const Request& launch, Body& body) {
    const int divisor = launch.op == ReduceOp::kAvg ? launch.team.size : 1;
    if constexpr (has_hot_sum(kType))
        if (is_sum(launch.op)) return body(device::Sum<T>{divisor});
    return body(device::AnyOperator<T>{launch.op, divisor});
}

/// Calls body(reduction) for the type and operator of `launch`, which check_reduction() admits.
/// Complex numbers are added as pairs of reals. A Request is a Launch or a Batch.
template <typename Request, typename Body>
Status with_reduction(const Request& launch, Body body) {
    switch (launch.type) {
        case DataType::kBfloat16:
            return with_type<DataType::kBfloat16, __nv_bfloat16>(launch, body);
        case DataType::kFloat16:
            return with_type<DataType::kFloat16, __half>(launch, body);
        case DataType::kFloat32:
            return with_type<DataType::kFloat32, float>(launch, body);
        case DataType::kComplex64:
            return with_type<DataType::kComplex64, float>(launch, body);
        case DataType::kFloat64:
            return with_type<DataType::kFloat64, double>(launch, body);
        case DataType::kComplex128:
            return with_type<DataType::kComplex128, double>(launch, body);
        case DataType::kUint8:
            return with_type<DataType::kUint8, std::uint8_t>(launch, body);
        case DataType::kInt8:
            return with_type<DataType::kInt8, std::int8_t>(launch, body);
        case DataType::kUint16:
            return with_type<DataType::kUint16, std::uint16_t>(launch, body);
        case DataType::kInt16:
            return with_type<DataType::kInt16, std::int16_t>(launch, body);
        case DataType::kUint32:
            return with_type<DataType::kUint32, std::uint32_t>(launch, body);
        case DataType::kInt32:
            return with_type<DataType::kInt32, std::int32_t>(launch, body);
        case DataType::kUint64:
            return with_type<DataType::kUint64, std::uint64_t>(launch, body);
        case DataType::kInt64:
            return with_type<DataType::kInt64, std::int64_t>(launch, body);
        case DataType::kFloat8E4m3:
            return with_type<DataType::kFloat8E4m3, __nv_fp8_e4m3>(launch, body);
        case DataType::kFloat8E5m2:
            return with_type<DataType::kFloat8E5m2, __nv_fp8_e5m2>(launch, body);
        case DataType::kBool:
            return with_type<DataType::kBool, device::Truth>(launch, body);
        case DataType::kBytes:
            break;
    }
    return Status::internal("no kernel supports this reduction");
}

template <int kMost>
using Ranks = std::integral_constant<int, kMost>;

/// Returns kernel_of(Ranks<kMost>()) with the least instantiated kMost of at least `ranks`: fewer
/// sources leave room for more loads in flight. Rare reductions have one kernel only.
template <typename Reduction, typename KernelOf>
auto kernel_for_ranks(int ranks, KernelOf kernel_of) {
    if constexpr (device::is_hot<Reduction>) {
        if (ranks <= 2) return kernel_of(Ranks<2>());
        if (ranks <= 4) return kernel_of(Ranks<4>());
    }
    return kernel_of(Ranks<abi::kMostDevices>());
}

/// Parameters of kernels that combine elements.
template <typename Reduction>
struct ReduceArguments {
    abi::DeviceTeam team;
    abi::PeerPointers peer_pointers;
    BlockPointers blocks;
    std::int32_t root;
    Reduction reduction;
};

/// Launches Kernels::choose<Reduction>(launch).
template <typename Kernels>
Status launch_reduction(const Launch& launch, Stream stream) {
    return with_reduction(launch, [&]<typename Reduction>(const Reduction& reduction) {
        return launch_kernel(
            Kernels::template choose<Reduction>(launch),
            {launch.team, launch.peer_pointers, launch.blocks, launch.root, reduction}, launch.plan,
            stream);
    });
}

}  // namespace pccl::kernels
