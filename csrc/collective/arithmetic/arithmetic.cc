// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/arithmetic/arithmetic.h"

#include <cstring>

#include "csrc/base/assert.h"
#include "csrc/base/text/text.h"
#include "csrc/collective/arithmetic/kernels.h"

namespace pccl {
namespace {

template <std::size_t Count, typename Value>
std::string_view name_in(const std::array<std::string_view, Count>& names, Value value) {
    const auto position = static_cast<std::size_t>(value);
    return position < Count ? names[position] : "unknown";
}

}  // namespace

std::string_view to_string(DataType type) {
    static constexpr std::array<std::string_view, kDataTypes> kNames = {
        "uint8",     "int8",       "uint16",  "int16",    "uint32",        "int32",
        "uint64",    "int64",      "float16", "bfloat16", "float32",       "float64",
        "complex64", "complex128", "bool",    "bytes",    "float8_e4m3fn", "float8_e5m2"};
    return name_in(kNames, type);
}

std::string_view to_string(ReduceOp op) {
    static constexpr std::array<std::string_view, kReduceOps> kNames = {
        "sum", "avg", "product", "min", "max", "band", "bor", "bxor"};
    return name_in(kNames, op);
}

}  // namespace pccl

namespace pccl::arithmetic {
namespace {

const Kernels& kernels() {
    static const Kernels& fastest = *levels().back().kernels;
    return fastest;
}

std::size_t index(DataType type) { return static_cast<std::size_t>(type); }

}  // namespace

std::span<const KernelLevel> levels() {
#if defined(__x86_64__)
    static constexpr std::array<KernelLevel, 3> kLevels = {
        {{"baseline", &kBaselineKernels}, {"avx2", &kAvx2Kernels}, {"avx512", &kAvx512Kernels}}};
    static const std::size_t usable = [] {
        __builtin_cpu_init();
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
        const bool avx512 =
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        return std::size_t{1} + (avx2 ? 1 : 0) + (avx2 && avx512 ? 1 : 0);
    }();
    return std::span(kLevels).first(usable);
#else
    static constexpr std::array<KernelLevel, 1> kLevels = {{{"baseline", &kBaselineKernels}}};
    return kLevels;
#endif
}

Result<Combine> combine_for(DataType type, ReduceOp op) {
    if (const Combine combine = kernels().combine[index(type)][static_cast<std::size_t>(op)])
        return combine;
    return Status::unsupported(concat("no reduction ", to_string(op), " of ", to_string(type)));
}

void widen(DataType type, float* dst, const std::byte* src, std::size_t count) {
    PCCL_ASSERT(is_half(type));
    kernels().widen[index(type)](dst, src, count);
}

void narrow(DataType type, std::byte* dst, const float* src, std::size_t count) {
    PCCL_ASSERT(is_half(type));
    kernels().narrow[index(type)](dst, src, count);
}

void divide(DataType type, std::byte* data, std::size_t count, int divisor) {
    const Divide kernel = kernels().divide[index(type)];
    PCCL_ASSERT(kernel != nullptr && divisor > 0);
    kernel(data, count, divisor);
}

void widen_integers(DataType type, std::byte* dst, const std::byte* src, std::size_t count) {
    PCCL_ASSERT(is_integer(type));
    kernels().widen_integers[index(type)](dst, src, count);
}

void average_integers(DataType type, std::byte* dst, const std::byte* sums, std::size_t count,
                      int divisor) {
    PCCL_ASSERT(is_integer(type) && divisor > 0);
    kernels().average[index(type)](dst, sums, count, divisor);
}

Combine add_split_integers() { return kernels().add_split_integers; }

void unify_nans(DataType type, std::byte* data, std::size_t count) {
    if (const UnifyNans kernel = kernels().unify_nans[index(type)]) kernel(data, count);
}

Status premultiply(DataType type, std::byte* dst, const std::byte* src, std::size_t count,
                   double factor) {
    const Scale kernel = kernels().scale[index(type)];
    if (kernel == nullptr)
        return Status::unsupported(
            concat("no multiplication of ", to_string(type), " by a factor"));
    kernel(dst, src, count, factor);
    return Status::ok();
}

void copy_bytes(std::byte* dst, const std::byte* src, std::size_t bytes) {
    if (bytes != 0) std::memcpy(dst, src, bytes);
}

}  // namespace pccl::arithmetic
