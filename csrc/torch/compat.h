// What differs between the releases of torch that one source builds against: 2.11 to 2.15.
//
// Only the virtuals that exist under the same name in all of them are overridden: from 2.14 on
// those of collectives are aliases. What later ones ask for beyond these (reconfigure, windows,
// hooks) they take for absent; docs/frameworks.md says what that means.
#pragma once

#include <dlfcn.h>
#include <torch/version.h>

#include <cstdint>
#include <torch/csrc/distributed/c10d/Types.hpp>

#if TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 11)
#error "PCCL needs torch 2.11 or newer"
#endif

namespace pccl::backend {

// The name without the prefix came after 2.11; this one stays as an alias.
using PremultiplySupplement = c10d::NCCLPreMulSumSupplement;

/// Whether the caller means to wait later. Options that cannot say so mean yes.
template <typename Options>
[[nodiscard]] bool is_async(const Options& options) {
    if constexpr (requires { options.asyncOp; }) {
        return options.asyncOp;
    } else {
        return true;
    }
}

/// The cudaStream_t of `stream`, on the current device. `streams` is a VirtualGuardImpl: what it
/// and Stream offer came one after the other, and before that AOTInductor's C interface has it for
/// the current stream, which `stream` must be.
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
                    "this torch does not tell its CUDA streams");
        return handle;
    }
}

}  // namespace pccl::backend
