// SPDX-License-Identifier: Apache-2.0

// Element types and reductions on the device.
//
// A reduction has an Element (as stored), a Value (as computed), combine() and finish(). A Value is
// rounded once at the end: it is float32 for fp8 and the half types; for integers it is wide enough
// for the sum of all ranks. Sum<T> serves the hot cases. AnyOperator<T> decides at run time, whose
// cost is negligible next to NVLink.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <pccl/types.h>

namespace pccl::kernels::device {

/// A byte that is true unless 0; results are 0 or 1.
struct Truth {
    std::uint8_t byte;
};

template <typename T, typename Computed = T>
struct Plain {
    using Value = Computed;
    static __device__ Value load(T stored) { return stored; }
    static __device__ T store(Value value) { return static_cast<T>(value); }
};

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

template <typename T>
struct Numeric : Plain<T> {};
template <>
struct Numeric<std::uint8_t> : Plain<std::uint8_t, std::uint32_t> {};
template <>
struct Numeric<std::int8_t> : Plain<std::int8_t, std::int32_t> {};
template <>
struct Numeric<std::uint16_t> : Plain<std::uint16_t, std::uint32_t> {};
template <>
struct Numeric<std::int16_t> : Plain<std::int16_t, std::int32_t> {};
template <>
struct Numeric<std::uint32_t> : Plain<std::uint32_t, std::uint64_t> {};
template <>
struct Numeric<std::int32_t> : Plain<std::int32_t, std::int64_t> {};
template <>
struct Numeric<std::uint64_t> : Plain<std::uint64_t, Uint128> {};
template <>
struct Numeric<std::int64_t> : Plain<std::int64_t, Int128> {};
template <>
struct Numeric<__half> {
    using Value = float;
    static __device__ float load(__half stored) { return __half2float(stored); }
    static __device__ __half store(float value) { return __float2half_rn(value); }
};
template <>
struct Numeric<__nv_bfloat16> {
    using Value = float;
    static __device__ float load(__nv_bfloat16 stored) { return __bfloat162float(stored); }
    static __device__ __nv_bfloat16 store(float value) { return __float2bfloat16_rn(value); }
};
template <>
struct Numeric<__nv_fp8_e4m3> {
    using Value = float;
    static __device__ float load(__nv_fp8_e4m3 stored) { return static_cast<float>(stored); }
    static __device__ __nv_fp8_e4m3 store(float value) { return __nv_fp8_e4m3(value); }
};
template <>
struct Numeric<__nv_fp8_e5m2> {
    using Value = float;
    static __device__ float load(__nv_fp8_e5m2 stored) { return static_cast<float>(stored); }
    static __device__ __nv_fp8_e5m2 store(float value) { return __nv_fp8_e5m2(value); }
};
template <>
struct Numeric<Truth> {
    using Value = bool;
    static __device__ bool load(Truth stored) { return stored.byte != 0; }
    static __device__ Truth store(bool value) { return {static_cast<std::uint8_t>(value)}; }
};

/// The NaN of all results, independent of the operand that had one. Float32 arithmetic yields a
/// single NaN by itself. Float64 passes on the payload of its second operand, so ranks that swap
/// the two would have different results.
template <typename T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <typename T>
__device__ __forceinline__ T with_one_nan(T value) {
    if constexpr (std::is_same_v<T, double>) return value == value ? value : kNan<double>;
    return value;
}

template <typename T>
inline constexpr bool is_128_bits = std::is_same_v<T, Int128> || std::is_same_v<T, Uint128>;
/// Integers without bool.
template <typename T>
inline constexpr bool is_integer =
    is_128_bits<T> || (std::is_integral_v<T> && !std::is_same_v<T, bool>);
/// The type in which integers wrap.
template <typename T>
using Modular = std::conditional_t<is_128_bits<T>, Uint128, std::uint64_t>;

/// Returns a + b, wrapping in integers.
template <typename T>
__device__ __forceinline__ T plus(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
        return a || b;
    } else if constexpr (is_integer<T>) {
        return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
    } else {
        return with_one_nan(a + b);
    }
}
template <typename T>
__device__ __forceinline__ T times(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
        return a && b;
    } else if constexpr (is_integer<T>) {
        return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
    } else {
        return with_one_nan(a * b);
    }
}

/// Returns the minimum or maximum of IEEE 754-2019 where neither operand is less: NaN for a NaN on
/// either side, and the preferred one of two zeros. As on the CPU, swapped operands give the same
/// bits.
template <typename T>
__device__ __forceinline__ T of_equals(T a, T b, bool wants_negative) {
    return a == b ? (std::signbit(a) == wants_negative ? a : b) : kNan<T>;
}
template <typename T>
__device__ __forceinline__ T lesser(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
        if (!(a < b || a > b)) return of_equals(a, b, true);
    return a < b ? a : b;
}
template <typename T>
__device__ __forceinline__ T greater(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
        if (!(a < b || a > b)) return of_equals(a, b, false);
    return a > b ? a : b;
}

/// Returns value / divisor, rounded towards zero for integers. The average of 128 bits fits 64, so
/// two 64-bit divisions replace a long one.
template <typename T>
__device__ __forceinline__ T divided(T value, int divisor) {
    if constexpr (is_128_bits<T>) {
        const bool is_negative = std::is_same_v<T, Int128> && static_cast<Int128>(value) < 0;
        const auto bits = static_cast<Uint128>(value);
        const Uint128 magnitude = is_negative ? -bits : bits;
        const auto by = static_cast<std::uint64_t>(divisor);
        const auto upper = static_cast<std::uint64_t>(magnitude >> 32);
        const std::uint64_t rest = (upper % by << 32) | static_cast<std::uint32_t>(magnitude);
        const std::uint64_t quotient = (upper / by << 32) + rest / by;
        return static_cast<T>(is_negative ? -static_cast<Uint128>(quotient) : quotient);
    } else {
        return value / static_cast<T>(divisor);
    }
}

template <typename T>
struct Sum {
    using Element = T;
    using Value = typename Numeric<T>::Value;
    int divisor;  // of averages; 1 otherwise

    __device__ Value combine(Value a, Value b) const { return plus(a, b); }
    __device__ Value finish(Value value) const {
        return divisor == 1 ? value : divided(value, divisor);
    }
};

template <typename Reduction>
inline constexpr bool is_hot = false;
template <typename T>
inline constexpr bool is_hot<Sum<T>> = true;

template <typename T>
struct AnyOperator {
    using Element = T;
    using Value = typename Numeric<T>::Value;
    ReduceOp op;
    int divisor;

    __device__ Value combine(Value a, Value b) const {
        switch (op) {
            case ReduceOp::kProduct:
                return times(a, b);
            case ReduceOp::kMin:
                return lesser(a, b);
            case ReduceOp::kMax:
                return greater(a, b);
            case ReduceOp::kBand:
            case ReduceOp::kBor:
            case ReduceOp::kBxor:
                return bitwise(a, b);
            case ReduceOp::kSum:
            case ReduceOp::kAvg:
                break;
        }
        return plus(a, b);
    }
    __device__ Value finish(Value value) const {
        if constexpr (!std::is_same_v<Value, bool>) {
            if (divisor != 1) return divided(value, divisor);
        }
        return value;
    }

   private:
    __device__ Value bitwise(Value a, Value b) const {
        if constexpr (is_integer<Value> || std::is_same_v<Value, bool>) {
            if (op == ReduceOp::kBand) return static_cast<Value>(a & b);
            if (op == ReduceOp::kBor) return static_cast<Value>(a | b);
            return static_cast<Value>(a ^ b);
        } else {
            return a;
        }
    }
};

/// A reduction without averages: it has no code for them that hot loops would have to branch
/// around.
template <typename Reduction>
struct Undivided : Reduction {
    __device__ typename Reduction::Value finish(typename Reduction::Value value) const {
        return value;
    }
};

/// Elements of one load (uint4, Word, or one element's bits) as values.
template <typename Reduction, typename Raw>
class PackedElements {
   public:
    using Element = typename Reduction::Element;
    using Value = typename Reduction::Value;

    __device__ explicit PackedElements(const Raw& raw) {
        Element elements[kElements];
        memcpy(elements, &raw, sizeof raw);
#pragma unroll
        for (int i = 0; i < kElements; ++i) values_[i] = Numeric<Element>::load(elements[i]);
    }
    __device__ void combine(const Reduction& reduction, const PackedElements& other) {
#pragma unroll
        for (int i = 0; i < kElements; ++i)
            values_[i] = reduction.combine(values_[i], other.values_[i]);
    }
    [[nodiscard]] __device__ Raw finish(const Reduction& reduction) const {
        Element elements[kElements];
#pragma unroll
        for (int i = 0; i < kElements; ++i)
            elements[i] = Numeric<Element>::store(reduction.finish(values_[i]));
        Raw raw;
        memcpy(&raw, elements, sizeof raw);
        return raw;
    }

   private:
    static constexpr int kElements = sizeof(Raw) / sizeof(Element);
    static_assert(kElements >= 1);
    Value values_[kElements];
};

}  // namespace pccl::kernels::device
