// What differs between the releases of torch that one source builds against: 2.11 to 2.13.
//
// Only the collective virtuals that exist under the same name in all of them are overridden;
// torch 2.14 keeps those names as aliases.
#pragma once

#include <torch/version.h>

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

}  // namespace pccl::backend
