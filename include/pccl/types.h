// SPDX-License-Identifier: Apache-2.0

// Ranks, element types, reduction operators and kinds of collectives. The numbers of the
// enumerators are part of the wire format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pccl/export.h>

namespace pccl {

/// Position of a process in its group, 0 <= rank < size.
using Rank = int;

/// Stands for no rank.
inline constexpr Rank kNoRank = -1;

/// Type of an element.
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
/// Number of element types.
inline constexpr int kDataTypes = 18;

/// Operator of a reduction.
enum class ReduceOp : std::uint8_t {
    kSum = 0,
    kAvg = 1,  // sum divided by the number of ranks. Integers: the exact sum, with the quotient
               // rounded towards zero
    kProduct = 2,
    kMin = 3,
    kMax = 4,
    kBand = 5,  // bitwise and
    kBor = 6,   // bitwise or
    kBxor = 7,  // bitwise exclusive or
};
/// Number of reduction operators.
inline constexpr int kReduceOps = 8;

/// Returns the bytes of one element.
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

/// Returns true for signed and unsigned integers; kBool and kBytes are none.
[[nodiscard]] constexpr bool is_integer(DataType type) { return type <= DataType::kInt64; }

/// Returns true for the floating-point types of two bytes.
[[nodiscard]] constexpr bool is_half(DataType type) {
    return type == DataType::kFloat16 || type == DataType::kBfloat16;
}

/// Kind of a collective, as MPI defines it.
enum class CollectiveKind : std::uint8_t {
    kAllReduce,
    kAllGather,
    kReduceScatter,
    kBroadcast,
    kReduce,
    kGather,
    kScatter,
    kAllToAll,
};

/// Returns "all_reduce", "all_gather", ...
[[nodiscard]] PCCL_API std::string_view to_string(CollectiveKind kind);
/// Returns "all_reduce, all_gather, ...": all names, for error messages.
[[nodiscard]] PCCL_API std::string names_of_collectives();
/// Returns the kind that prints as `name`; nullopt if there is none.
[[nodiscard]] PCCL_API std::optional<CollectiveKind> collective_named(std::string_view name);

/// Returns true for broadcast, reduce, gather and scatter, which have a root.
[[nodiscard]] PCCL_API bool is_rooted(CollectiveKind kind);
/// Returns true for all_reduce, reduce and reduce_scatter.
[[nodiscard]] PCCL_API bool reduces(CollectiveKind kind);
/// Returns true for gather, scatter and all_to_all: only two ranks have the length of a block.
[[nodiscard]] PCCL_API bool is_per_pair(CollectiveKind kind);

/// Direction of a one-sided transfer, from the view of the process that begins it.
enum class RmaOp : std::uint8_t { kRead, kWrite };

/// Stream of a GPU, in which the caller orders its work.
struct GpuCallerStream {
    void* stream = nullptr;  // a CUstream (or cudaStream_t); null: the default stream
    int device = -1;         // CUDA ordinal in this process
};

}  // namespace pccl
