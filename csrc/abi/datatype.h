// SPDX-License-Identifier: Apache-2.0

// Element types and reduction operators. Their numbers are part of the wire format.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pccl {

enum class DataType : std::uint8_t {
    kUint8 = 0,
    kInt8 = 1,
    kUint16 = 2,
    kInt16 = 3,
    kUint32 = 4,
    kInt32 = 5,
    kUint64 = 6,
    kInt64 = 7,
    kFloat16 = 8,
    kBfloat16 = 9,
    kFloat32 = 10,
    kFloat64 = 11,
    kComplex64 = 12,
    kComplex128 = 13,
    kBool = 14,
    kBytes = 15,  // one opaque byte: can be moved, not reduced (quantised types travel as bytes)
    // Only GPUs reduce the following types.
    kFloat8E4m3 = 16,  // torch's float8_e4m3fn: no infinities
    kFloat8E5m2 = 17,
};
inline constexpr int kDataTypes = 18;

enum class ReduceOp : std::uint8_t {
    kSum = 0,
    kAvg = 1,  // sum divided by the number of ranks. Integers: the exact sum, with the quotient
               // rounded towards zero
    kProduct = 2,
    kMin = 3,
    kMax = 4,
    kBand = 5,
    kBor = 6,
    kBxor = 7,
};
inline constexpr int kReduceOps = 8;

[[nodiscard]] constexpr std::size_t size_of(DataType type) {
    switch (type) {
        case DataType::kUint8:
        case DataType::kInt8:
        case DataType::kBool:
        case DataType::kBytes:
        case DataType::kFloat8E4m3:
        case DataType::kFloat8E5m2:
            return 1;
        case DataType::kUint16:
        case DataType::kInt16:
        case DataType::kFloat16:
        case DataType::kBfloat16:
            return 2;
        case DataType::kUint32:
        case DataType::kInt32:
        case DataType::kFloat32:
            return 4;
        case DataType::kUint64:
        case DataType::kInt64:
        case DataType::kFloat64:
        case DataType::kComplex64:
            return 8;
        case DataType::kComplex128:
            return 16;
    }
    return 0;
}

[[nodiscard]] constexpr bool is_integer(DataType type) { return type <= DataType::kInt64; }

[[nodiscard]] constexpr bool is_half(DataType type) {
    return type == DataType::kFloat16 || type == DataType::kBfloat16;
}

}  // namespace pccl
