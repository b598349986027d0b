// SPDX-License-Identifier: Apache-2.0

// Element-wise arithmetic on host memory: reductions and their conversions.
//
// It is vectorised for the widest instruction set of the machine, which is chosen once at run time.
// Pointers need no alignment. Counts are elements. Bool reduces by logical operators, see
// combine_for().
#pragma once

#include <cstddef>
#include <string_view>

#include <pccl/status.h>
#include <pccl/types.h>
#include "csrc/collective/arithmetic/combine.h"

namespace pccl {

[[nodiscard]] PCCL_API std::string_view to_string(DataType type);
[[nodiscard]] PCCL_API std::string_view to_string(ReduceOp op);

}  // namespace pccl

namespace pccl::arithmetic {

/// Returns the kernel for a type and operator. 16-bit floats compute in float32 and round once.
/// kAvg combines as kSum (see divide). Bool: sum, max and bor are "or"; product, min and band are
/// "and"; bxor is "!="; avg is unsupported. Complex: sum, avg, product. Floats: no bitwise
/// operators; min and max of a NaN and any value are NaN, as for torch.amin, and -0 is less than
/// +0. Integers wrap. Results are bitwise equal on every machine and for either order of a and b
/// (except for the sign and payload of a sum or product that is a NaN: see unify_nans()).
/// kUnsupported names the pair.
[[nodiscard]] PCCL_API Result<Combine> combine_for(DataType type, ReduceOp op);

/// Converts 16-bit floats to float32; narrow() converts back (round to nearest even). Only for
/// is_half(type).
PCCL_API void widen(DataType type, float* dst, const std::byte* src, std::size_t count);
PCCL_API void narrow(DataType type, std::byte* dst, const float* src, std::size_t count);

/// Computes data[i] /= divisor in place, the last step of an average of non-integers. 16-bit floats
/// divide in float32.
PCCL_API void divide(DataType type, std::byte* data, std::size_t count, int divisor);

/// Converts integers to numbers whose sum is exact for an average over any group: integers of 8 and
/// 16 bits to 32 bits, those of 32 bits to 64 bits, those of 64 bits to two numbers, which
/// add_split_integers() adds.
PCCL_API void widen_integers(DataType type, std::byte* dst, const std::byte* src,
                             std::size_t count);
/// Computes dst[i] = sums[i] / divisor, rounded towards zero, the last step of an average of
/// integers. `sums` are sums of widen_integers() results. dst and sums must not overlap.
PCCL_API void average_integers(DataType type, std::byte* dst, const std::byte* sums,
                               std::size_t count, int divisor);
[[nodiscard]] PCCL_API Combine add_split_integers();

/// Replaces every NaN in place by the positive quiet NaN without a payload, as min and max return
/// it; does nothing for types without NaNs.
PCCL_API void unify_nans(DataType type, std::byte* data, std::size_t count);

/// Computes dst[i] = src[i] * factor, the first half of PREMUL_SUM, for floating point and complex
/// types; kUnsupported otherwise. dst may be src.
PCCL_API Status premultiply(DataType type, std::byte* dst, const std::byte* src, std::size_t count,
                            double factor);

/// Copies as memcpy does; null pointers are valid for zero bytes. memcpy uses non-temporal stores
/// for single pieces larger than the cache. Doing so for smaller pieces doubles the rate if the
/// pieces fill a buffer of 64 MiB, and costs a third of it if they fill 16 MiB or less (measured: 2
/// cores with 32 MiB of L3, pieces of 64 KiB to 1 MiB).
PCCL_API void copy_bytes(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace pccl::arithmetic
