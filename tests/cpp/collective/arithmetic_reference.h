// SPDX-License-Identifier: Apache-2.0

// Arithmetic on elements, one at a time and by other means than the kernels: an oracle for their
// tests.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <pccl/types.h>

namespace pccl::arithmetic::reference {

using Element = std::vector<std::byte>;

template <typename T>
T as(const Element& element) {
    T value;
    std::memcpy(&value, element.data(), sizeof(T));
    return value;
}

template <typename T>
Element bytes_of(const T& value) {
    Element element(sizeof(T));
    std::memcpy(element.data(), &value, sizeof(T));
    return element;
}

/// A binary format of 16 bits.
struct Half {
    int exponent_bits;
    int mantissa_bits;
    [[nodiscard]] int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
inline constexpr Half kFloat16{5, 10};
inline constexpr Half kBfloat16{8, 7};
inline const Half& half_of(DataType type) {
    return type == DataType::kFloat16 ? kFloat16 : kBfloat16;
}

/// Of a floating-point type: zeros, the smallest number, 1, infinity and NaNs with several
/// payloads, two of them signalling; each with both signs, the positive one first.
inline std::vector<Element> special_values(DataType type) {
    const auto bits = static_cast<int>(8 * size_of(type));
    const int mantissa = type == DataType::kFloat16    ? 10
                         : type == DataType::kBfloat16 ? 7
                         : type == DataType::kFloat32  ? 23
                                                       : 52;
    const std::uint64_t hidden = std::uint64_t{1} << mantissa;
    const std::uint64_t infinity = (std::uint64_t{1} << (bits - 1)) - hidden;
    const std::uint64_t one = (infinity >> 1) / hidden * hidden;
    std::vector<Element> values;
    for (const std::uint64_t magnitude :
         {std::uint64_t{0}, std::uint64_t{1}, one, infinity, infinity + 1, infinity + 2,
          infinity + hidden / 2, infinity + hidden / 2 + 1, infinity + hidden - 1})
        for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{1}}) {
            const std::uint64_t value = magnitude | (sign << (bits - 1));
            Element& element = values.emplace_back(size_of(type));
            std::memcpy(element.data(), &value, element.size());
        }
    return values;
}

inline double decode(const Half& half, std::uint16_t bits) {
    const int mantissa = bits & ((1 << half.mantissa_bits) - 1);
    const int exponent = (bits >> half.mantissa_bits) & ((1 << half.exponent_bits) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == (1 << half.exponent_bits) - 1)
        return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : sign * std::numeric_limits<double>::infinity();
    const int hidden = exponent == 0 ? 0 : 1 << half.mantissa_bits;
    const int scale = (exponent == 0 ? 1 : exponent) - half.bias() - half.mantissa_bits;
    return sign * std::ldexp(hidden + mantissa, scale);
}

/// Round to nearest even by the value of a unit in the last place.
inline std::uint16_t encode(const Half& half, double value) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const int infinity = ((1 << half.exponent_bits) - 1) << half.mantissa_bits;
    if (std::isnan(value))
        return static_cast<std::uint16_t>(sign | infinity | (1 << (half.mantissa_bits - 1)));
    const double magnitude = std::fabs(value);
    if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
    const int smallest = 1 - half.bias();
    const int exponent = magnitude == 0 ? smallest : std::max(std::ilogb(magnitude), smallest);
    const auto units =
        static_cast<int>(std::nearbyint(std::ldexp(magnitude, half.mantissa_bits - exponent)));
    // A carry out of the mantissa runs into the exponent, as it should.
    const long code =
        static_cast<long>(units) + (static_cast<long>(exponent - smallest) << half.mantissa_bits);
    return static_cast<std::uint16_t>(sign | std::min<long>(code, infinity));
}

/// A result: every NaN is the same one.
template <typename T>
T settled(T value) {
    return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

/// minimum of IEEE 754-2019.
template <typename T>
T minimum(T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? a : b;
    return std::min(a, b);
}

template <typename T>
std::optional<T> combine_floats(ReduceOp op, T a, T b) {
    switch (op) {
        case ReduceOp::kSum:
        case ReduceOp::kAvg:
            return settled(a + b);
        case ReduceOp::kProduct:
            return settled(a * b);
        case ReduceOp::kMin:
            return minimum(a, b);
        case ReduceOp::kMax:
            return settled(-minimum(-a, -b));
        default:
            return std::nullopt;
    }
}

template <typename T>
std::optional<T> combine_integers(ReduceOp op, T a, T b) {
    const __int128 left = a;
    const __int128 right = b;
    switch (op) {
        case ReduceOp::kSum:
        case ReduceOp::kAvg:
            return static_cast<T>(left + right);
        case ReduceOp::kProduct:
            return static_cast<T>(static_cast<unsigned __int128>(left) *
                                  static_cast<unsigned __int128>(right));
        case ReduceOp::kMin:
            return left < right ? a : b;
        case ReduceOp::kMax:
            return left > right ? a : b;
        case ReduceOp::kBand:
            return static_cast<T>(left & right);
        case ReduceOp::kBor:
            return static_cast<T>(left | right);
        case ReduceOp::kBxor:
            return static_cast<T>(left ^ right);
    }
    return std::nullopt;
}

inline std::optional<std::uint8_t> combine_bools(ReduceOp op, bool a, bool b) {
    switch (op) {
        case ReduceOp::kSum:
        case ReduceOp::kMax:
        case ReduceOp::kBor:
            return a || b;
        case ReduceOp::kProduct:
        case ReduceOp::kMin:
        case ReduceOp::kBand:
            return a && b;
        case ReduceOp::kBxor:
            return a != b;
        case ReduceOp::kAvg:
            break;
    }
    return std::nullopt;
}

template <typename T>
std::optional<std::complex<T>> combine_complex(ReduceOp op, std::complex<T> a, std::complex<T> b) {
    if (op == ReduceOp::kSum || op == ReduceOp::kAvg)
        return std::complex<T>(settled(a.real() + b.real()), settled(a.imag() + b.imag()));
    if (op != ReduceOp::kProduct) return std::nullopt;
    // By the definition, each product rounded: std::complex treats infinities in its own way.
    const volatile T rr = a.real() * b.real();
    const volatile T ii = a.imag() * b.imag();
    const volatile T ri = a.real() * b.imag();
    const volatile T ir = a.imag() * b.real();
    return std::complex<T>(settled(rr - ii), settled(ri + ir));
}

template <typename T>
std::optional<Element> wrap(const std::optional<T>& value) {
    return value ? std::optional(bytes_of(*value)) : std::nullopt;
}

inline std::optional<Element> combine(DataType type, ReduceOp op, const Element& a,
                                      const Element& b) {
    switch (type) {
        case DataType::kUint8:
            return wrap(combine_integers(op, as<std::uint8_t>(a), as<std::uint8_t>(b)));
        case DataType::kInt8:
            return wrap(combine_integers(op, as<std::int8_t>(a), as<std::int8_t>(b)));
        case DataType::kUint16:
            return wrap(combine_integers(op, as<std::uint16_t>(a), as<std::uint16_t>(b)));
        case DataType::kInt16:
            return wrap(combine_integers(op, as<std::int16_t>(a), as<std::int16_t>(b)));
        case DataType::kUint32:
            return wrap(combine_integers(op, as<std::uint32_t>(a), as<std::uint32_t>(b)));
        case DataType::kInt32:
            return wrap(combine_integers(op, as<std::int32_t>(a), as<std::int32_t>(b)));
        case DataType::kUint64:
            return wrap(combine_integers(op, as<std::uint64_t>(a), as<std::uint64_t>(b)));
        case DataType::kInt64:
            return wrap(combine_integers(op, as<std::int64_t>(a), as<std::int64_t>(b)));
        case DataType::kFloat16:
        case DataType::kBfloat16: {
            const Half& half = half_of(type);
            const auto wide =
                combine_floats(op, static_cast<float>(decode(half, as<std::uint16_t>(a))),
                               static_cast<float>(decode(half, as<std::uint16_t>(b))));
            return wide ? std::optional(bytes_of(encode(half, *wide))) : std::nullopt;
        }
        case DataType::kFloat32:
            return wrap(combine_floats(op, as<float>(a), as<float>(b)));
        case DataType::kFloat64:
            return wrap(combine_floats(op, as<double>(a), as<double>(b)));
        case DataType::kComplex64:
            return wrap(
                combine_complex(op, as<std::complex<float>>(a), as<std::complex<float>>(b)));
        case DataType::kComplex128:
            return wrap(
                combine_complex(op, as<std::complex<double>>(a), as<std::complex<double>>(b)));
        case DataType::kBool:
            return wrap(combine_bools(op, as<std::uint8_t>(a) != 0, as<std::uint8_t>(b) != 0));
        case DataType::kBytes:
        case DataType::kFloat8E4m3:
        case DataType::kFloat8E5m2:
            break;
    }
    return std::nullopt;
}

/// Whether two elements are the same: bit by bit, except that any NaN equals any other.
inline bool same(DataType type, const Element& a, const Element& b) {
    if (a == b) return true;
    switch (type) {
        case DataType::kFloat16:
        case DataType::kBfloat16:
            return std::isnan(decode(half_of(type), as<std::uint16_t>(a))) &&
                   std::isnan(decode(half_of(type), as<std::uint16_t>(b)));
        case DataType::kFloat32:
            return std::isnan(as<float>(a)) && std::isnan(as<float>(b));
        case DataType::kFloat64:
            return std::isnan(as<double>(a)) && std::isnan(as<double>(b));
        case DataType::kComplex64:
        case DataType::kComplex128: {
            const DataType real =
                type == DataType::kComplex64 ? DataType::kFloat32 : DataType::kFloat64;
            const auto half = static_cast<std::ptrdiff_t>(a.size() / 2);
            return same(real, {a.begin(), a.begin() + half}, {b.begin(), b.begin() + half}) &&
                   same(real, {a.begin() + half, a.end()}, {b.begin() + half, b.end()});
        }
        default:
            return false;
    }
}

}  // namespace pccl::arithmetic::reference
