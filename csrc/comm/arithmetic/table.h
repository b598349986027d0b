// Fills a table of kernels with the loops, as compiled for one instruction set.
// See elements.h for the rules of this file.
#pragma once

#include "csrc/comm/arithmetic/float16_vectors.h"
#include "csrc/comm/arithmetic/kernels.h"
#include "csrc/comm/arithmetic/loops.h"

namespace pccl::comm::arithmetic {
namespace {

constexpr std::size_t index(DataType type) { return static_cast<std::size_t>(type); }

class TableBuilder {
   public:
    constexpr void set(DataType type, ReduceOp op, Combine combine) {
        kernels_.combine[index(type)][static_cast<std::size_t>(op)] = combine;
    }

    /// `Unsigned` has the width of `Integer`: what does not look at the sign is compiled once.
    template <typename Integer, typename Unsigned>
    constexpr void add_integer(DataType type) {
        using Bits = Modular<Unsigned>;
        set(type, ReduceOp::kSum, combine<Bits, Sum>);
        set(type, ReduceOp::kAvg, combine<Bits, Sum>);
        set(type, ReduceOp::kProduct, combine<Bits, Product>);
        set(type, ReduceOp::kBand, combine<Bits, And>);
        set(type, ReduceOp::kBor, combine<Bits, Or>);
        set(type, ReduceOp::kBxor, combine<Bits, Xor>);
        set(type, ReduceOp::kMin, combine<Plain<Integer>, Min>);
        set(type, ReduceOp::kMax, combine<Plain<Integer>, Max>);
        kernels_.divide[index(type)] = divide_integer<Integer>;
    }

    template <typename Element>
    constexpr void add_scaling(DataType type) {
        kernels_.divide[index(type)] = divide_real<Element>;
        kernels_.scale[index(type)] = scale<Element>;
    }

    template <typename Element>
    constexpr void add_real(DataType type) {
        set(type, ReduceOp::kSum, combine<Element, Sum>);
        set(type, ReduceOp::kAvg, combine<Element, Sum>);
        set(type, ReduceOp::kProduct, combine<Element, Product>);
        set(type, ReduceOp::kMin, combine<Element, Min>);
        set(type, ReduceOp::kMax, combine<Element, Max>);
        add_scaling<Element>(type);
    }

    constexpr void add_float16() {
        constexpr auto kType = DataType::kFloat16;
        add_real<Float16>(kType);
        kernels_.widen[index(kType)] = widen<Float16>;
        kernels_.narrow[index(kType)] = narrow<Float16>;
#if defined(__F16C__)
        set(kType, ReduceOp::kSum, combine_float16<Sum>);
        set(kType, ReduceOp::kAvg, combine_float16<Sum>);
        set(kType, ReduceOp::kProduct, combine_float16<Product>);
        set(kType, ReduceOp::kMin, combine_float16<Min>);
        set(kType, ReduceOp::kMax, combine_float16<Max>);
        kernels_.widen[index(kType)] = widen_float16;
        kernels_.narrow[index(kType)] = narrow_float16;
#endif
    }

    constexpr void add_bfloat16() {
        constexpr auto kType = DataType::kBfloat16;
        set(kType, ReduceOp::kSum, combine_bfloat16<Sum>);
        set(kType, ReduceOp::kAvg, combine_bfloat16<Sum>);
        set(kType, ReduceOp::kProduct, combine_bfloat16<Product>);
        set(kType, ReduceOp::kMin, combine_bfloat16<Min>);
        set(kType, ReduceOp::kMax, combine_bfloat16<Max>);
        kernels_.widen[index(kType)] = widen<Bfloat16>;
        kernels_.narrow[index(kType)] = narrow<Bfloat16>;
        add_scaling<Bfloat16>(kType);
    }

    template <typename Real>
    constexpr void add_complex(DataType type) {
        set(type, ReduceOp::kSum, combine_pairs<Real>);
        set(type, ReduceOp::kAvg, combine_pairs<Real>);
        set(type, ReduceOp::kProduct, multiply_complex<Real>);
        kernels_.divide[index(type)] = divide_pairs<Real>;
        kernels_.scale[index(type)] = scale_pairs<Real>;
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
    Kernels kernels_;
};

/// To be called in constant expressions only: its own code must not reach the linker.
constexpr Kernels make_kernels() {
    TableBuilder table;
    table.add_integer<std::uint8_t, std::uint8_t>(DataType::kUint8);
    table.add_integer<std::int8_t, std::uint8_t>(DataType::kInt8);
    table.add_integer<std::uint16_t, std::uint16_t>(DataType::kUint16);
    table.add_integer<std::int16_t, std::uint16_t>(DataType::kInt16);
    table.add_integer<std::uint32_t, std::uint32_t>(DataType::kUint32);
    table.add_integer<std::int32_t, std::uint32_t>(DataType::kInt32);
    table.add_integer<std::uint64_t, std::uint64_t>(DataType::kUint64);
    table.add_integer<std::int64_t, std::uint64_t>(DataType::kInt64);
    table.add_float16();
    table.add_bfloat16();
    table.add_real<Plain<float>>(DataType::kFloat32);
    table.add_real<Plain<double>>(DataType::kFloat64);
    table.add_complex<float>(DataType::kComplex64);
    table.add_complex<double>(DataType::kComplex128);
    table.add_bool();
    return table.kernels();
}

}  // namespace
}  // namespace pccl::comm::arithmetic
