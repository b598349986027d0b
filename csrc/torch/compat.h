// SPDX-License-Identifier: Apache-2.0

// Differences between the releases of torch that this source supports: 2.11 to 2.15.
//
// Only virtual functions that have the same name in all of them are overridden: from 2.14 on, those
// of collectives are aliases. Later releases treat additional ones (reconfigure, windows, hooks) as
// absent; docs/reference/torch.md lists the consequences.
#pragma once

#include <dlfcn.h>
#include <torch/version.h>

#include <cstdint>
#include <torch/csrc/distributed/c10d/Types.hpp>

#if TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 11)
#error "PCCL needs torch 2.11 or newer"
#endif

namespace pccl::backend {

// The name without the prefix came after 2.11; this one remains as an alias.
using PremultiplySupplement = c10d::NCCLPreMulSumSupplement;

/// Returns whether the caller waits later. Options without such a field mean yes.
template <typename Options>
[[nodiscard]] bool is_async(const Options& options) {
    if constexpr (requires { options.asyncOp; }) {
        return options.asyncOp;
    } else {
        return true;
    }
}

/// Returns the cudaStream_t of `stream`, on the current device. `streams` is a VirtualGuardImpl. It
/// and Stream got this function in different releases; before that, only AOTInductor's C interface
/// has it, for the current stream, which `stream` must be.
template <typename Streams, typename Stream>
[[nodiscard]] void* native_handle(const Streams& streams, const Stream& stream) {
    if constexpr (requires { streams.getStreamNativeHandle(stream); }) {
        return streams.getStreamNativeHandle(stream);
    } else if constexpr (requires { stream.native_handle(); }) {
        return stream.native_handle();
    } else {
        using Current = std::int32_t (*)(std::int32_t device, void** stream);
        static const auto current =
            reinterpret_cast<Current>(::dlsym(RTLD_DEFAULT, "aoti_torch_get_current_cuda_stream"));
        void* handle = nullptr;
        TORCH_CHECK(current != nullptr && current(stream.device_index(), &handle) == 0,
                    "this torch does not expose its CUDA streams");
        return handle;
    }
}

}  // namespace pccl::backend
