// SPDX-License-Identifier: Apache-2.0

// float16 by the conversion instructions of F16C and AVX-512, which GCC does not generate from the
// loops. The rules of elements.h apply to this file.
#pragma once

#if defined(__F16C__)

#include <immintrin.h>

#include "csrc/collective/arithmetic/loops.h"

namespace pccl::arithmetic {
namespace {

#if defined(__AVX512F__)
using Floats = __m512;
using Halves = __m256i;
// The forms without a mask make GCC 12 warn about an uninitialised variable of its own (PR 105593).
constexpr __mmask16 kEvery = 0xFFFF;
inline Floats floats_of(Halves halves) { return _mm512_maskz_cvtph_ps(kEvery, halves); }
inline Halves halves_of(Floats floats) {
    return _mm512_maskz_cvtps_ph(kEvery, floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
using Floats = __m256;
using Halves = __m128i;
inline Floats floats_of(Halves halves) { return _mm256_cvtph_ps(halves); }
inline Halves halves_of(Floats floats) {
    return _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#endif
constexpr std::size_t kLanes = sizeof(Floats) / sizeof(float);

/// Loads the first `lanes` 16-bit floats at `src`; the other lanes are zero.
inline Floats load_halves(const std::byte* src, std::size_t lanes) {
    Halves halves{};
    __builtin_memcpy(&halves, src, lanes * 2);
    return floats_of(halves);
}
inline void store_halves(std::byte* dst, Floats floats, std::size_t lanes) {
    const Halves halves = halves_of(floats);
    __builtin_memcpy(dst, &halves, lanes * 2);
}

/// Calls step(first, lanes) for whole vectors, then for the rest.
template <typename Step>
void for_vectors(std::size_t count, Step step) {
    std::size_t first = 0;
    for (; first + kLanes <= count; first += kLanes) step(first, kLanes);
    if (first < count) step(first, count - first);
}

template <typename Op>
void combine_float16(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t count) {
    for_vectors(
        count, [=](std::size_t first, std::size_t lanes) __attribute__((always_inline)) {
            const Floats left = load_halves(a + 2 * first, lanes);
            const Floats right = load_halves(b + 2 * first, lanes);
            store_halves(dst + 2 * first, Op::apply(left, right), lanes);
        });
}

inline void widen_float16(float* dst, const std::byte* src, std::size_t count) {
    for_vectors(
        count, [=](std::size_t first, std::size_t lanes) __attribute__((always_inline)) {
            const Floats floats = load_halves(src + 2 * first, lanes);
            __builtin_memcpy(dst + first, &floats, lanes * sizeof(float));
        });
}

inline void narrow_float16(std::byte* dst, const float* src, std::size_t count) {
    for_vectors(
        count, [=](std::size_t first, std::size_t lanes) __attribute__((always_inline)) {
            Floats floats{};
            __builtin_memcpy(&floats, src + first, lanes * sizeof(float));
            store_halves(dst + 2 * first, floats, lanes);
        });
}

}  // namespace
}  // namespace pccl::arithmetic

#endif
