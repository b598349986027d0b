// SPDX-License-Identifier: Apache-2.0

// Kernels of one instruction set, and the sets that this machine can run.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <pccl/types.h>
#include "csrc/collective/arithmetic/combine.h"

namespace pccl::arithmetic {

using Widen = void (*)(float* dst, const std::byte* src, std::size_t count);
using Narrow = void (*)(std::byte* dst, const float* src, std::size_t count);
using Divide = void (*)(std::byte* data, std::size_t count, int divisor);
using UnifyNans = void (*)(std::byte* data, std::size_t count);
using WidenIntegers = void (*)(std::byte* dst, const std::byte* src, std::size_t count);
using Average = void (*)(std::byte* dst, const std::byte* sums, std::size_t count, int divisor);
using Scale = void (*)(std::byte* dst, const std::byte* src, std::size_t count, double factor);

/// Kernels of one instruction set; null if a type does not have the operation.
struct Kernels {
    std::array<std::array<Combine, kReduceOps>, kDataTypes> combine{};
    std::array<Widen, kDataTypes> widen{};
    std::array<Narrow, kDataTypes> narrow{};
    std::array<Divide, kDataTypes> divide{};
    std::array<WidenIntegers, kDataTypes> widen_integers{};
    std::array<Average, kDataTypes> average{};
    Combine add_split_integers = nullptr;
    std::array<Scale, kDataTypes> scale{};
    std::array<UnifyNans, kDataTypes> unify_nans{};
};

struct KernelLevel {
    const char* name;  // "baseline", "avx2", "avx512"
    const Kernels* kernels;
};

/// Returns the levels that this machine can run, slowest first; never empty. All give bitwise equal
/// results, except for NaNs of sums and products.
[[nodiscard]] std::span<const KernelLevel> levels();

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace pccl::arithmetic
