// SPDX-License-Identifier: Apache-2.0

// Loops of the kernels, written so that GCC vectorises them. The rules of elements.h apply to this
// file.
//
// The contract of Combine allows `ivdep`: dst may be exactly a or b, which creates no dependence
// between iterations, and must not overlap them otherwise. `unroll` compensates for the
// instructions with which Min and Max check for NaNs.
#pragma once

#include "csrc/collective/arithmetic/elements.h"

namespace pccl::arithmetic {
namespace {

template <typename T>
Loose<T>* loose(std::byte* bytes) {
    return reinterpret_cast<Loose<T>*>(bytes);
}
template <typename T>
const Loose<T>* loose(const std::byte* bytes) {
    return reinterpret_cast<const Loose<T>*>(bytes);
}

template <typename Element, typename Op>
void combine(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t count) {
    using Stored = typename Element::Stored;
    auto* const out = loose<Stored>(dst);
    const auto* const left = loose<Stored>(a);
    const auto* const right = loose<Stored>(b);
#pragma GCC ivdep
#pragma GCC unroll 4
    for (std::size_t i = 0; i < count; ++i)
        out[i].value =
            Element::store(Op::apply(Element::load(left[i].value), Element::load(right[i].value)));
}

/// Rounds to nearest even; the upper half of the result is bfloat16. A NaN made of two bfloat16
/// values has its payload there already, and must not be rounded.
inline std::uint32_t rounded_to_upper_half(float value) {
    const std::uint32_t bits = bits_of(value);
    const std::uint32_t increment = 0x7FFF + ((bits >> 16) & 1);
    return bits + (value == value ? increment : 0);
}

/// Combines two bfloat16 values per word: bfloat16 is the upper half of float32, so that a shift
/// and a mask suffice, and no lane changes its width. This is twice as fast as element by element.
template <typename Op>
void combine_bfloat16(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t count) {
    constexpr std::uint32_t kUpper = 0xFFFF'0000;
    auto* const out = loose<std::uint32_t>(dst);
    const auto* const left = loose<std::uint32_t>(a);
    const auto* const right = loose<std::uint32_t>(b);
    const std::size_t pairs = count / 2;
#pragma GCC ivdep
    for (std::size_t i = 0; i < pairs; ++i) {
        const std::uint32_t x = left[i].value;
        const std::uint32_t y = right[i].value;
        const float even = Op::apply(float_of(x << 16), float_of(y << 16));
        const float odd = Op::apply(float_of(x & kUpper), float_of(y & kUpper));
        out[i].value = (rounded_to_upper_half(even) >> 16) | (rounded_to_upper_half(odd) & kUpper);
    }
    const std::size_t done = pairs * 2 * sizeof(std::uint16_t);
    combine<Bfloat16, Op>(dst + done, a + done, b + done, count % 2);
}

/// Converts the bits of a 16-bit float to an integer of the same order from -infinity to infinity,
/// with -0 before +0 and NaNs beyond both ends; and back.
inline std::int16_t in_order(std::int16_t bits) {
    return static_cast<std::int16_t>(bits ^ ((bits >> 15) & 0x7FFF));
}

/// Computes Min or Max of 16-bit floats without a conversion to float32: twice as many fit into a
/// register.
template <typename Half, typename Op>
void combine_in_order(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t count) {
    constexpr auto kLowest = static_cast<std::int16_t>(~Half::kInfinity);
    auto* const out = loose<std::int16_t>(dst);
    const auto* const left = loose<std::int16_t>(a);
    const auto* const right = loose<std::int16_t>(b);
#pragma GCC ivdep
#pragma GCC unroll 4
    for (std::size_t i = 0; i < count; ++i) {
        const std::int16_t x = in_order(left[i].value);
        const std::int16_t y = in_order(right[i].value);
        const bool is_nan = (Min::apply(x, y) < kLowest) | (Max::apply(x, y) > Half::kInfinity);
        out[i].value = is_nan ? Half::kNan : in_order(Op::apply(x, y));
    }
}

template <typename Real>
void unify_nans(std::byte* data, std::size_t count) {
    auto* const out = loose<Real>(data);
    for (std::size_t i = 0; i < count; ++i) out[i].value = with_one_nan(out[i].value);
}

template <typename Real>
void unify_nans_of_pairs(std::byte* data, std::size_t count) {
    unify_nans<Real>(data, 2 * count);
}

template <typename Half>
void unify_nans_of_halves(std::byte* data, std::size_t count) {
    auto* const out = loose<std::int16_t>(data);
    for (std::size_t i = 0; i < count; ++i)
        out[i].value = (out[i].value & 0x7FFF) > Half::kInfinity ? Half::kNan : out[i].value;
}

constexpr std::size_t kComplexBlock = 64;

/// Adds complex numbers as twice as many reals.
template <typename Real>
void combine_pairs(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t count) {
    combine<Plain<Real>, Sum>(dst, a, b, 2 * count);
}

template <typename Real>
void multiply_complex_block(Loose<Real>* out, const Loose<Real>* a, const Loose<Real>* b,
                            std::size_t count) {
    Real re[kComplexBlock];
    Real im[kComplexBlock];
    for (std::size_t i = 0; i < count; ++i) {
        re[i] = a[2 * i].value * b[2 * i].value - a[2 * i + 1].value * b[2 * i + 1].value;
        im[i] = a[2 * i].value * b[2 * i + 1].value + a[2 * i + 1].value * b[2 * i].value;
    }
    for (std::size_t i = 0; i < count; ++i) {
        out[2 * i].value = re[i];
        out[2 * i + 1].value = im[i];
    }
}

/// Multiplies in blocks, with separate real and imaginary parts: if they alternate, GCC 12 fuses
/// multiplications and additions in spite of -ffp-contract=off, and the levels no longer round
/// equally.
template <typename Real>
void multiply_complex(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t count) {
    auto* const out = loose<Real>(dst);
    const auto* const left = loose<Real>(a);
    const auto* const right = loose<Real>(b);
    for (std::size_t i = 0; i < count; i += kComplexBlock) {
        const std::size_t rest = count - i;
        multiply_complex_block(out + 2 * i, left + 2 * i, right + 2 * i,
                               rest < kComplexBlock ? rest : kComplexBlock);
    }
}

template <typename Element>
void widen(float* dst, const std::byte* src, std::size_t count) {
    const auto* const in = loose<typename Element::Stored>(src);
    for (std::size_t i = 0; i < count; ++i) dst[i] = Element::load(in[i].value);
}

template <typename Element>
void narrow(std::byte* dst, const float* src, std::size_t count) {
    auto* const out = loose<typename Element::Stored>(dst);
    for (std::size_t i = 0; i < count; ++i) out[i].value = Element::store(src[i]);
}

template <typename Element>
void divide_real(std::byte* data, std::size_t count, int divisor) {
    auto* const out = loose<typename Element::Stored>(data);
    const auto by = static_cast<typename Element::Value>(divisor);
    for (std::size_t i = 0; i < count; ++i)
        out[i].value = Element::store(Element::load(out[i].value) / by);
}

template <typename Real>
void divide_pairs(std::byte* data, std::size_t count, int divisor) {
    divide_real<Plain<Real>>(data, 2 * count, divisor);
}

/// Converts integers to a Wide, which has room for the sum over every rank of a group.
template <typename Integer, typename Wide>
void widen_integers(std::byte* dst, const std::byte* src, std::size_t count) {
    auto* const out = loose<Wide>(dst);
    const auto* const in = loose<Integer>(src);
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): int8 keeps its sign.
    for (std::size_t i = 0; i < count; ++i) out[i].value = static_cast<Wide>(in[i].value);
}

/// Divides sums of widen_integers() results. C++ rounds quotients towards zero.
template <typename Integer, typename Wide>
void average_integers(std::byte* dst, const std::byte* sums, std::size_t count, int divisor) {
    auto* const out = loose<Integer>(dst);
    const auto* const in = loose<Wide>(sums);
    const auto by = static_cast<Wide>(divisor);
    for (std::size_t i = 0; i < count; ++i) out[i].value = static_cast<Integer>(in[i].value / by);
}

constexpr std::uint64_t kLowerHalf = 0xFFFF'FFFF;

/// Splits 64-bit integers into two numbers each: upper * 2^32 + lower.
template <typename Integer>
void split_integers(std::byte* dst, const std::byte* src, std::size_t count) {
    auto* const out = loose<std::uint64_t>(dst);
    const auto* const in = loose<Integer>(src);
    for (std::size_t i = 0; i < count; ++i) {
        const Integer value = in[i].value;
        out[2 * i].value = static_cast<std::uint64_t>(value >> 32);
        out[2 * i + 1].value = static_cast<std::uint64_t>(value) & kLowerHalf;
    }
}

/// Returns (upper * 2^32 + lower) / divisor, which fits into 64 bits; lower and divisor fit into
/// 32.
inline std::uint64_t quotient(std::uint64_t upper, std::uint64_t lower, std::uint64_t divisor) {
    return ((upper / divisor) << 32) + ((upper % divisor << 32) | lower) / divisor;
}

/// Divides sums of split_integers() results; quotients are rounded towards zero.
template <typename Integer>
void average_split_integers(std::byte* dst, const std::byte* sums, std::size_t count, int divisor) {
    auto* const out = loose<Integer>(dst);
    const auto* const in = loose<Integer>(sums);
    const auto by = static_cast<std::uint64_t>(divisor);
    for (std::size_t i = 0; i < count; ++i) {
        const Integer upper = in[2 * i].value + (in[2 * i + 1].value >> 32);
        const auto lower = static_cast<std::uint64_t>(in[2 * i + 1].value) & kLowerHalf;
        const auto bits = static_cast<std::uint64_t>(upper);
        const std::uint64_t borrow = lower != 0 ? 1 : 0;
        const std::uint64_t value = upper < 0 ? -quotient(-bits - borrow, -lower & kLowerHalf, by)
                                              : quotient(bits, lower, by);
        out[i].value = static_cast<Integer>(value);
    }
}

/// Adds results of split_integers().
inline void add_split_integers(std::byte* dst, const std::byte* a, const std::byte* b,
                               std::size_t count) {
    combine<Modular<std::uint64_t>, Sum>(dst, a, b, 2 * count);
}

template <typename Element>
void scale(std::byte* dst, const std::byte* src, std::size_t count, double factor) {
    auto* const out = loose<typename Element::Stored>(dst);
    const auto* const in = loose<typename Element::Stored>(src);
    const auto by = static_cast<typename Element::Value>(factor);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        out[i].value = Element::store(Element::load(in[i].value) * by);
}

template <typename Real>
void scale_pairs(std::byte* dst, const std::byte* src, std::size_t count, double factor) {
    scale<Plain<Real>>(dst, src, 2 * count, factor);
}

}  // namespace
}  // namespace pccl::arithmetic
