// Element-wise arithmetic on host memory: reductions, and what surrounds them.
//
// Vectorised for the widest instruction set that the machine has, chosen once at run time. Pointers
// need no alignment. Counts are elements. Bool reduces as logic: sum, max, bor, product... see
// combine_for().
#pragma once

#include <cstddef>
#include <string_view>

#include "csrc/abi/datatype.h"
#include "csrc/base/status.h"
#include "csrc/collective/arithmetic/combine.h"

namespace pccl {

[[nodiscard]] PCCL_API std::string_view to_string(DataType type);
[[nodiscard]] PCCL_API std::string_view to_string(ReduceOp op);

}  // namespace pccl

namespace pccl::arithmetic {

/// The kernel for a type and operator. Half types compute in float32 and round once. kAvg combines
/// as kSum (see divide). Bool: sum, max and bor are "or"; product, min and band are "and"; bxor is
/// "!=" ; avg is refused. Complex: sum, avg, product. Floats: no bitwise operators; min and max of
/// a NaN and anything are NaN, as for torch.amin, and -0 is less than +0. Integers wrap. Every
/// machine gets the same bits, and so does every order of a and b (but for the sign and payload of
/// a sum or product that is a NaN: see unify_nans()). kUnsupported names the pair.
[[nodiscard]] PCCL_API Result<Combine> combine_for(DataType type, ReduceOp op);

/// Half to float32 and back (round to nearest even); only for is_half(type).
PCCL_API void widen(DataType type, float* dst, const std::byte* src, std::size_t count);
PCCL_API void narrow(DataType type, std::byte* dst, const float* src, std::size_t count);

/// data[i] /= divisor in place: ends an average of anything but integers. Halves divide in float32.
PCCL_API void divide(DataType type, std::byte* data, std::size_t count, int divisor);

/// Integers as numbers in which they are added up exactly for an average over any group: those of 8
/// and 16 bits as numbers of 32 bits, those of 32 as one of 64, those of 64 as two, which
/// add_split_integers() adds.
PCCL_API void widen_integers(DataType type, std::byte* dst, const std::byte* src,
                             std::size_t count);
/// dst[i] = sums[i] / divisor, rounded towards zero: ends an average of integers, given the sums of
/// what widen_integers() makes of them. dst and sums may not overlap.
PCCL_API void average_integers(DataType type, std::byte* dst, const std::byte* sums,
                               std::size_t count, int divisor);
[[nodiscard]] PCCL_API Combine add_split_integers();

/// Makes every NaN in place the positive quiet one without a payload, as min and max give it;
/// nothing for types without NaNs.
PCCL_API void unify_nans(DataType type, std::byte* data, std::size_t count);

/// dst[i] = src[i] * factor: PREMUL_SUM's first half, for floating point and complex types;
/// kUnsupported otherwise. dst may be src.
PCCL_API Status premultiply(DataType type, std::byte* dst, const std::byte* src, std::size_t count,
                            double factor);

/// memcpy, and nothing for no bytes. It goes past the cache by itself for single pieces larger than
/// the cache. Doing so for smaller pieces (measured: 2 cores with 32 MiB of L3, pieces of 64 KiB to
/// 1 MiB) doubles the rate where the pieces fill a buffer of 64 MiB, and costs a third of it where
/// they fill 16 MiB or less.
PCCL_API void copy_bytes(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace pccl::arithmetic
