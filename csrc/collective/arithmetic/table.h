// SPDX-License-Identifier: Apache-2.0

// Builder of the kernel table from the loops, for one instruction set. The rules of elements.h
// apply to this file.
#pragma once

#include "csrc/collective/arithmetic/float16_vectors.h"
#include "csrc/collective/arithmetic/kernels.h"
#include "csrc/collective/arithmetic/loops.h"

namespace pccl::arithmetic {
namespace {

constexpr std::size_t index(DataType type) { return static_cast<std::size_t>(type); }

class TableBuilder {
   public:
    constexpr void set(DataType type, ReduceOp op, Combine combine) {
        kernels_.combine[index(type)][static_cast<std::size_t>(op)] = combine;
    }

    constexpr void set_sums(DataType type, Combine sum, Combine product) {
        set(type, ReduceOp::kSum, sum);
        set(type, ReduceOp::kAvg, sum);
        set(type, ReduceOp::kProduct, product);
    }

    /// Adds an integer type. `Unsigned` has the width of `Integer`: kernels that ignore the sign
    /// are compiled once. A `Wide` has room for averages.
    template <typename Integer, typename Unsigned, typename Wide>
    constexpr void add_integer(DataType type) {
        add_operators<Integer, Unsigned>(type);
        kernels_.widen_integers[index(type)] = widen_integers<Integer, Wide>;
        kernels_.average[index(type)] = average_integers<Integer, Wide>;
    }

    template <typename Integer>
    constexpr void add_longest_integer(DataType type) {
        add_operators<Integer, std::uint64_t>(type);
        kernels_.widen_integers[index(type)] = split_integers<Integer>;
        kernels_.average[index(type)] = average_split_integers<Integer>;
    }

    template <typename Integer, typename Unsigned>
    constexpr void add_operators(DataType type) {
        using Bits = Modular<Unsigned>;
        set_sums(type, combine<Bits, Sum>, combine<Bits, Product>);
        set(type, ReduceOp::kBand, combine<Bits, And>);
        set(type, ReduceOp::kBor, combine<Bits, Or>);
        set(type, ReduceOp::kBxor, combine<Bits, Xor>);
        set(type, ReduceOp::kMin, combine<Plain<Integer>, Min>);
        set(type, ReduceOp::kMax, combine<Plain<Integer>, Max>);
    }

    template <typename Element>
    constexpr void add_scaling(DataType type) {
        kernels_.divide[index(type)] = divide_real<Element>;
        kernels_.scale[index(type)] = scale<Element>;
    }

    template <typename Real>
    constexpr void add_real(DataType type) {
        set_sums(type, combine<Plain<Real>, Sum>, combine<Plain<Real>, Product>);
        set(type, ReduceOp::kMin, combine<Plain<Real>, Min>);
        set(type, ReduceOp::kMax, combine<Plain<Real>, Max>);
        kernels_.unify_nans[index(type)] = unify_nans<Real>;
        add_scaling<Plain<Real>>(type);
    }

    template <typename Half>
    constexpr void add_half(DataType type) {
        set(type, ReduceOp::kMin, combine_in_order<Half, Min>);
        set(type, ReduceOp::kMax, combine_in_order<Half, Max>);
        kernels_.widen[index(type)] = widen<Half>;
        kernels_.narrow[index(type)] = narrow<Half>;
        kernels_.unify_nans[index(type)] = unify_nans_of_halves<Half>;
        add_scaling<Half>(type);
    }

    constexpr void add_float16() {
        constexpr auto kType = DataType::kFloat16;
        add_half<Float16>(kType);
#if defined(__F16C__)
        set_sums(kType, combine_float16<Sum>, combine_float16<Product>);
        kernels_.widen[index(kType)] = widen_float16;
        kernels_.narrow[index(kType)] = narrow_float16;
#else
        set_sums(kType, combine<Float16, Sum>, combine<Float16, Product>);
#endif
    }

    constexpr void add_bfloat16() {
        constexpr auto kType = DataType::kBfloat16;
        add_half<Bfloat16>(kType);
        set_sums(kType, combine_bfloat16<Sum>, combine_bfloat16<Product>);
    }

    template <typename Real>
    constexpr void add_complex(DataType type) {
        set_sums(type, combine_pairs<Real>, multiply_complex<Real>);
        kernels_.divide[index(type)] = divide_pairs<Real>;
        kernels_.scale[index(type)] = scale_pairs<Real>;
        kernels_.unify_nans[index(type)] = unify_nans_of_pairs<Real>;
    }

    constexpr void add_bool() {
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kBor})
            set(DataType::kBool, op, combine<Truth, Or>);
        for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kBand})
            set(DataType::kBool, op, combine<Truth, And>);
        set(DataType::kBool, ReduceOp::kBxor, combine<Truth, Xor>);
    }

    [[nodiscard]] constexpr const Kernels& kernels() const { return kernels_; }

   private:
    Kernels kernels_{.add_split_integers = add_split_integers};
};

/// Returns the table. Call it in constant expressions only: its own code must not reach the linker.
constexpr Kernels make_kernels() {
    TableBuilder table;
    table.add_integer<std::uint8_t, std::uint8_t, std::uint32_t>(DataType::kUint8);
    table.add_integer<std::int8_t, std::uint8_t, std::int32_t>(DataType::kInt8);
    table.add_integer<std::uint16_t, std::uint16_t, std::uint32_t>(DataType::kUint16);
    table.add_integer<std::int16_t, std::uint16_t, std::int32_t>(DataType::kInt16);
    table.add_integer<std::uint32_t, std::uint32_t, std::uint64_t>(DataType::kUint32);
    table.add_integer<std::int32_t, std::uint32_t, std::int64_t>(DataType::kInt32);
    table.add_longest_integer<std::uint64_t>(DataType::kUint64);
    table.add_longest_integer<std::int64_t>(DataType::kInt64);
    table.add_float16();
    table.add_bfloat16();
    table.add_real<float>(DataType::kFloat32);
    table.add_real<double>(DataType::kFloat64);
    table.add_complex<float>(DataType::kComplex64);
    table.add_complex<double>(DataType::kComplex128);
    table.add_bool();
    return table.kernels();
}

}  // namespace
}  // namespace pccl::arithmetic
