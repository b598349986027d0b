// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/arithmetic/accumulator.h"

namespace pccl::arithmetic {
namespace {

bool rounds(ReduceOp op) {
    return op == ReduceOp::kSum || op == ReduceOp::kAvg || op == ReduceOp::kProduct;
}

bool is_longest_integer(DataType type) { return is_integer(type) && size_of(type) == 8; }

/// Returns the type in which numbers of at most 32 bits are accumulated.
DataType wider(DataType type) {
    switch (type) {
        case DataType::kUint8:
        case DataType::kUint16:
            return DataType::kUint32;
        case DataType::kInt8:
        case DataType::kInt16:
            return DataType::kInt32;
        case DataType::kUint32:
            return DataType::kUint64;
        case DataType::kInt32:
            return DataType::kInt64;
        default:
            return DataType::kFloat32;
    }
}

}  // namespace

bool Accumulator::is_wide_for(DataType type, ReduceOp op, int ranks) {
    if (ranks < 2) return false;
    if (op == ReduceOp::kAvg) return is_half(type) || is_integer(type);
    return is_half(type) && rounds(op) && ranks > 2;
}

Accumulator::Accumulator(DataType type, ReduceOp op, int ranks)
    : type_(type),
      divisor_(op == ReduceOp::kAvg ? ranks : 1),
      is_wide_(is_wide_for(type, op, ranks)) {
    if (is_wide_ && is_longest_integer(type)) {
        element_bytes_ = 2 * size_of(type);
        combine_ = add_split_integers();
        return;
    }
    const DataType kept = is_wide_ ? wider(type) : type;
    element_bytes_ = size_of(kept);
    combine_ = combine_for(kept, op).value();
}

void Accumulator::widen(std::byte* dst, const std::byte* src, std::size_t count) const {
    if (is_integer(type_))
        widen_integers(type_, dst, src, count);
    else
        arithmetic::widen(type_, reinterpret_cast<float*>(dst), src, count);
}

void Accumulator::finish(std::byte* dst, std::byte* partial, std::size_t count) const {
    if (is_wide_ && is_integer(type_))
        return average_integers(type_, dst, partial, count, divisor_);
    if (divisor_ > 1) divide(is_wide_ ? DataType::kFloat32 : type_, partial, count, divisor_);
    if (is_wide_) narrow(type_, dst, reinterpret_cast<const float*>(partial), count);
}

void Accumulator::unify_nans(std::byte* partial, std::size_t count) const {
    if (is_integer(type_)) return;
    arithmetic::unify_nans(is_wide_ ? DataType::kFloat32 : type_, partial, count);
}

}  // namespace pccl::arithmetic
