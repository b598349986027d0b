// SPDX-License-Identifier: Apache-2.0

// Element types and operators for the loops of loops.h.
//
// This file is compiled once for each instruction set. Everything is in an unnamed namespace, and
// nothing calls an inline function of the standard library: the linker keeps one copy of such a
// function for all sets, possibly one that this machine cannot run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pccl::arithmetic {
namespace {

/// A T at any address, without alignment.
template <typename T>
struct [[gnu::packed, gnu::may_alias]] Loose {
    T value;
};

inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
inline std::uint64_t bits_of(double value) { return __builtin_bit_cast(std::uint64_t, value); }

/// Returns one fixed NaN. A processor keeps the payload of one of the operands, so that ranks with
/// swapped operands would have different NaNs. (Not constexpr: with a literal instead, GCC 12 makes
/// Max 1.5 times as slow.)
template <typename V>
V one_nan() {
    return V{} + __builtin_nanf("");
}
template <typename V>
V with_one_nan(V value) {
    return value == value ? value : one_nan<V>();
}

/// Types that compute in their stored type.
template <typename T>
struct Plain {
    using Stored = T;
    using Value = T;
    static T load(T stored) { return stored; }
    static T store(T value) { return value; }
};

struct Bfloat16 {
    using Stored = std::uint16_t;
    using Value = float;
    static constexpr std::int16_t kInfinity = 0x7F80;
    static constexpr std::int16_t kNan = 0x7FC0;  // as one_nan()

    static float load(std::uint16_t stored) {
        return float_of(static_cast<std::uint32_t>(stored) << 16);
    }
    /// Rounds to nearest even; a NaN becomes quiet.
    static std::uint16_t store(float value) {
        const std::uint32_t bits = bits_of(value);
        const std::uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
        const std::uint32_t quiet = bits | 0x0040'0000;
        const bool is_nan = (bits & 0x7FFF'FFFF) > 0x7F80'0000;
        return static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16);
    }
};

/// Conversion without tables or branches, so that it vectorises. No step has a subnormal result, so
/// the result does not depend on the processor's flush-to-zero modes.
struct Float16 {
    using Stored = std::uint16_t;
    using Value = float;
    static constexpr std::int16_t kInfinity = 0x7C00;
    static constexpr std::int16_t kNan = 0x7E00;
    static constexpr std::uint32_t kRebias = 112U << 23;  // float32's bias is 127, float16's is 15

    static float load(std::uint16_t stored) {
        const std::uint32_t half = stored;
        const std::uint32_t shifted = (half & 0x7FFF) << 13;
        // 0.5 has an ulp of 2^-24, the unit of float16's subnormal numbers.
        const std::uint32_t subnormal = bits_of(float_of(0x3F00'0000 | (half & 0x3FF)) - 0.5F);
        const std::uint32_t special =
            (half & 0x3FF) != 0 ? 0x0040'0000U : 0U;  // a NaN becomes quiet
        const std::uint32_t normal = shifted + kRebias;
        const std::uint32_t huge = (normal + kRebias) | special;
        const std::uint32_t finite = shifted < (1U << 23) ? subnormal : normal;
        const std::uint32_t magnitude = shifted >= (31U << 23) ? huge : finite;
        return float_of(magnitude | ((half & 0x8000) << 16));
    }
    static std::uint16_t store(float value) {
        const std::uint32_t bits = bits_of(value);
        const std::uint32_t magnitude = bits & 0x7FFF'FFFF;
        const std::uint32_t tiny = bits_of(float_of(magnitude) + 0.5F) - 0x3F00'0000;
        const std::uint32_t normal = (magnitude - kRebias + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
        const std::uint32_t nan = 0x7E00 | ((magnitude >> 13) & 0x3FF);
        const std::uint32_t finite = magnitude < 0x3880'0000 ? tiny : normal;       // below 2^-14
        const std::uint32_t bounded = magnitude >= 0x4780'0000 ? 0x7C00U : finite;  // from 2^16
        const std::uint32_t half = magnitude > 0x7F80'0000 ? nan : bounded;
        return static_cast<std::uint16_t>(half | ((bits >> 16) & 0x8000));
    }
};

/// Integers compute in an unsigned type of at least 32 bits, where wrapping is defined.
template <typename T>
struct Modular {
    using Stored = T;
    using Value = decltype(T{} + 0U);
    static Value load(T stored) { return stored; }
    static T store(Value value) { return static_cast<T>(value); }
};

/// Any byte but 0 is true; results are 0 or 1.
struct Truth {
    using Stored = std::uint8_t;
    using Value = std::uint8_t;
    static std::uint8_t load(std::uint8_t stored) { return stored != 0 ? 1 : 0; }
    static std::uint8_t store(std::uint8_t value) { return value; }
};

// The operators give bitwise equal results when their operands are swapped, except for NaNs of Sum
// and Product. Those two take numbers, or GCC vectors of floats.
struct Sum {
    template <typename V>
    static V apply(V a, V b) {
        return static_cast<V>(a + b);
    }
};
struct Product {
    template <typename V>
    static V apply(V a, V b) {
        return static_cast<V>(a * b);
    }
};
/// minimum and maximum of IEEE 754-2019: a NaN on either side gives NaN, as for torch.amin and
/// torch.amax, and -0 is less than +0.
struct Min {
    template <typename V>
    static V apply(V a, V b) {
        const V first = a < b ? a : b;
        if constexpr (std::is_integral_v<V>) {
            return first;
        } else {
            // If neither operand is less, first and second are one operand each: two zeros, equal
            // numbers, or a NaN among them.
            const V second = b < a ? b : a;
            return with_one_nan(__builtin_bit_cast(V, bits_of(first) | bits_of(second)));
        }
    }
};
struct Max {
    template <typename V>
    static V apply(V a, V b) {
        const V first = a > b ? a : b;
        if constexpr (std::is_integral_v<V>) {
            return first;
        } else {
            const V second = b > a ? b : a;
            const V greatest = __builtin_bit_cast(V, bits_of(first) & bits_of(second));
            return ((a <= b) | (a > b)) ? greatest : one_nan<V>();
        }
    }
};
struct And {
    template <typename V>
    static V apply(V a, V b) {
        return static_cast<V>(a & b);
    }
};
struct Or {
    template <typename V>
    static V apply(V a, V b) {
        return static_cast<V>(a | b);
    }
};
struct Xor {
    template <typename V>
    static V apply(V a, V b) {
        return static_cast<V>(a ^ b);
    }
};

}  // namespace
}  // namespace pccl::arithmetic
