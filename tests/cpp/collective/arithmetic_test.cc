// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/arithmetic/arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>

#include "csrc/collective/arithmetic/kernels.h"
#include "tests/cpp/collective/arithmetic_reference.h"

namespace pccl::arithmetic {
namespace {

using arithmetic::KernelLevel;
using ::testing::HasSubstr;

constexpr std::size_t kSizes[] = {0, 1, 7, 63, 64, 65, 1000};
constexpr std::size_t kOffset = 3;  // from every alignment that matters
constexpr std::byte kGuard{0xA5};

DataType type_at(int index) { return static_cast<DataType>(index); }
ReduceOp op_at(int index) { return static_cast<ReduceOp>(index); }

template <typename Float>
Float random_float(std::mt19937_64& random) {
    static constexpr Float kSpecial[] = {0.0,
                                         -0.0,
                                         1.0,
                                         std::numeric_limits<Float>::infinity(),
                                         -std::numeric_limits<Float>::infinity(),
                                         std::numeric_limits<Float>::quiet_NaN(),
                                         -std::numeric_limits<Float>::quiet_NaN(),
                                         std::numeric_limits<Float>::signaling_NaN(),
                                         std::numeric_limits<Float>::denorm_min(),
                                         std::numeric_limits<Float>::max()};
    if (random() % 8 == 0) return kSpecial[random() % std::size(kSpecial)];
    return static_cast<Float>(std::ldexp(std::uniform_real_distribution<double>(-2, 2)(random),
                                         static_cast<int>(random() % 20) - 10));
}

/// Random elements: floats of moderate size with special values among them, otherwise any bits.
std::vector<std::byte> random_elements(DataType type, std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes(count * size_of(type));
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    const auto fill = [&]<typename Float>(Float) {
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(Float)) {
            const Float value = random_float<Float>(random);
            std::memcpy(bytes.data() + at, &value, sizeof value);
        }
    };
    if (type == DataType::kFloat32 || type == DataType::kComplex64) fill(float{});
    if (type == DataType::kFloat64 || type == DataType::kComplex128) fill(double{});
    if (type == DataType::kBool)
        for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 3);
    return bytes;
}

reference::Element element(const std::byte* bytes, std::size_t i, DataType type) {
    return {bytes + i * size_of(type), bytes + (i + 1) * size_of(type)};
}

/// Bytes at an odd address with guards around them.
class Unaligned {
   public:
    explicit Unaligned(const std::vector<std::byte>& content) : size_(content.size()) {
        memory_.assign(size_ + 2 * kOffset, kGuard);
        std::copy(content.begin(), content.end(), data());
    }
    std::byte* data() { return memory_.data() + kOffset; }
    [[nodiscard]] bool guards_hold() const {
        const auto is_guard = [](std::byte byte) { return byte == kGuard; };
        return std::all_of(memory_.begin(), memory_.begin() + kOffset, is_guard) &&
               std::all_of(memory_.end() - kOffset, memory_.end(), is_guard);
    }

   private:
    std::size_t size_;
    std::vector<std::byte> memory_;
};

enum class Alias { kNone, kLeft, kRight };

class KernelTest : public testing::TestWithParam<KernelLevel> {
   protected:
    static const arithmetic::Kernels& kernels() { return *GetParam().kernels; }

    static void check_combine(DataType type, ReduceOp op, std::size_t count, Alias alias) {
        const auto left = random_elements(type, count, count + 1);
        const auto right = random_elements(type, count, count + 2);
        Unaligned a(left);
        Unaligned b(right);
        Unaligned other(std::vector<std::byte>(left.size()));
        Unaligned& dst = alias == Alias::kLeft ? a : alias == Alias::kRight ? b : other;
        const auto kernel =
            kernels().combine[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
        kernel(dst.data(), a.data(), b.data(), count);
        ASSERT_TRUE(a.guards_hold() && b.guards_hold() && other.guards_hold());
        for (std::size_t i = 0; i < count; ++i) {
            const auto expected = reference::combine(type, op, element(left.data(), i, type),
                                                     element(right.data(), i, type));
            const auto got = element(dst.data(), i, type);
            const bool is_extreme = op == ReduceOp::kMin || op == ReduceOp::kMax;
            ASSERT_TRUE(is_extreme ? got == *expected : reference::same(type, got, *expected))
                << to_string(type) << " " << to_string(op) << " element " << i << " of " << count;
        }
    }

    /// dst[i] = a[i] (op) b[i], as bytes.
    static std::vector<std::byte> combined(DataType type, ReduceOp op,
                                           const std::vector<std::byte>& a,
                                           const std::vector<std::byte>& b) {
        std::vector<std::byte> dst(a.size());
        kernels().combine[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)](
            dst.data(), a.data(), b.data(), a.size() / size_of(type));
        return dst;
    }
    static void unify(DataType type, std::vector<std::byte>& data) {
        kernels().unify_nans[static_cast<std::size_t>(type)](data.data(),
                                                             data.size() / size_of(type));
    }
};

TEST_P(KernelTest, EveryTypeAndOperatorAgreesWithTheReference) {
    int pairs = 0;
    for (int t = 0; t < kDataTypes; ++t) {
        for (int o = 0; o < kReduceOps; ++o) {
            const reference::Element zero(size_of(type_at(t)));
            const bool exists = reference::combine(type_at(t), op_at(o), zero, zero).has_value();
            const auto kernel =
                kernels().combine[static_cast<std::size_t>(t)][static_cast<std::size_t>(o)];
            ASSERT_EQ(kernel != nullptr, exists)
                << to_string(type_at(t)) << " " << to_string(op_at(o));
            if (!exists) continue;
            ++pairs;
            for (const std::size_t count : kSizes)
                for (const Alias alias : {Alias::kNone, Alias::kLeft, Alias::kRight})
                    check_combine(type_at(t), op_at(o), count, alias);
        }
    }
    EXPECT_EQ(pairs, 8 * 8 + 4 * 5 + 2 * 3 + 7);
}

/// All triples of special values, as three arrays.
std::array<std::vector<std::byte>, 3> special_triples(DataType type) {
    const auto values = reference::special_values(type);
    std::array<std::vector<std::byte>, 3> all;
    const auto append = [](std::vector<std::byte>& to, const reference::Element& value) {
        to.insert(to.end(), value.begin(), value.end());
    };
    for (const auto& a : values)
        for (const auto& b : values)
            for (const auto& c : values) {
                append(all[0], a);
                append(all[1], b);
                append(all[2], c);
            }
    return all;
}

TEST_P(KernelTest, SwappedOperandsGiveTheSameBits) {
    for (const auto& [type, part] : {std::pair{DataType::kFloat16, DataType::kFloat16},
                                     std::pair{DataType::kBfloat16, DataType::kBfloat16},
                                     std::pair{DataType::kFloat32, DataType::kFloat32},
                                     std::pair{DataType::kFloat64, DataType::kFloat64},
                                     std::pair{DataType::kComplex64, DataType::kFloat32},
                                     std::pair{DataType::kComplex128, DataType::kFloat64}}) {
        const auto [a, b, c] = special_triples(part);
        for (const ReduceOp op :
             {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
            const bool is_extreme = op == ReduceOp::kMin || op == ReduceOp::kMax;
            if (type != part && is_extreme) continue;
            auto one_way = combined(type, op, a, b);
            auto the_other = combined(type, op, b, a);
            if (!is_extreme)
                for (auto* const result : {&one_way, &the_other}) unify(type, *result);
            EXPECT_EQ(one_way, the_other) << to_string(type) << " " << to_string(op);
            if (!is_extreme) continue;
            EXPECT_EQ(combined(type, op, combined(type, op, a, b), c),
                      combined(type, op, a, combined(type, op, b, c)))
                << to_string(type) << " " << to_string(op);
        }
    }
}

TEST_P(KernelTest, OnlyNansAreUnified) {
    for (const DataType type :
         {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32, DataType::kFloat64}) {
        const auto before = special_triples(type)[2];
        auto after = before;
        unify(type, after);
        // The lesser of a number and itself is that number, and of a NaN and itself the one NaN.
        EXPECT_EQ(after, combined(type, ReduceOp::kMin, before, before)) << to_string(type);
        EXPECT_NE(after, before) << to_string(type);
    }
}

TEST_P(KernelTest, WidenIsExactForAllHalves) {
    for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
        std::vector<std::uint16_t> halves(65536);
        for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
        std::vector<float> floats(halves.size());
        kernels().widen[static_cast<std::size_t>(type)](
            floats.data(), reinterpret_cast<const std::byte*>(halves.data()), halves.size());
        for (std::size_t i = 0; i < halves.size(); ++i) {
            const auto expected =
                static_cast<float>(reference::decode(reference::half_of(type), halves[i]));
            ASSERT_TRUE(std::isnan(expected) ? std::isnan(floats[i])
                                             : std::bit_cast<std::uint32_t>(floats[i]) ==
                                                   std::bit_cast<std::uint32_t>(expected))
                << to_string(type) << " bits " << i;
        }
    }
}

TEST_P(KernelTest, NarrowRoundsToNearestEven) {
    std::vector<float> floats;
    for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
        // Every half, the midpoint to the next one, and the floats beside both.
        for (std::uint32_t bits = 0; bits < 65536; ++bits) {
            const auto low =
                reference::decode(reference::half_of(type), static_cast<std::uint16_t>(bits));
            const auto high =
                reference::decode(reference::half_of(type), static_cast<std::uint16_t>(bits ^ 1));
            for (const double value : {low, (low + high) / 2}) {
                const auto middle = static_cast<float>(value);
                floats.insert(floats.end(),
                              {middle, std::nextafter(middle, 0.0F),
                               std::nextafter(middle, std::numeric_limits<float>::max())});
            }
        }
        std::mt19937 random(3);
        for (int i = 0; i < 100'000; ++i)
            floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
        std::vector<std::uint16_t> halves(floats.size());
        kernels().narrow[static_cast<std::size_t>(type)](
            reinterpret_cast<std::byte*>(halves.data()), floats.data(), floats.size());
        for (std::size_t i = 0; i < floats.size(); ++i) {
            const std::uint16_t expected = reference::encode(reference::half_of(type), floats[i]);
            ASSERT_TRUE(reference::same(type, reference::bytes_of(halves[i]),
                                        reference::bytes_of(expected)))
                << to_string(type) << " of " << floats[i] << ": " << halves[i] << " not "
                << expected;
        }
    }
}

__extension__ using Int128 = __int128;

template <typename Integer>
std::vector<Integer> extremes() {
    using Limits = std::numeric_limits<Integer>;
    return {Limits::min(),
            static_cast<Integer>(Limits::min() + 1),
            static_cast<Integer>(Limits::min() / 2),
            static_cast<Integer>(-7),
            static_cast<Integer>(-1),
            0,
            1,
            7,
            static_cast<Integer>(Limits::max() / 2 + 1),
            static_cast<Integer>(Limits::max() - 1),
            Limits::max()};
}

/// Of extreme and random contributions of `ranks` ranks, against 128 bits.
template <typename Integer>
void check_averages(const Kernels& kernels, DataType type, int ranks) {
    const auto extreme = extremes<Integer>();
    const std::size_t count = ranks > 1000 ? extreme.size() : 203;
    const auto number = static_cast<std::size_t>(type);
    const bool is_split = sizeof(Integer) == 8;
    const std::size_t wide_bytes = is_split ? 16 : sizeof(Integer) == 4 ? 8 : 4;
    const DataType wide = sizeof(Integer) == 4 ? DataType::kInt64 : DataType::kInt32;
    const Combine add = is_split ? kernels.add_split_integers
                                 : kernels.combine[static_cast<std::size_t>(wide)]
                                                  [static_cast<std::size_t>(ReduceOp::kSum)];
    std::mt19937_64 random(static_cast<unsigned>(ranks));
    std::vector<std::byte> sums(count * wide_bytes);
    std::vector<std::byte> next(count * wide_bytes);
    std::vector<Int128> exact(count);
    for (int rank = 0; rank < ranks; ++rank) {
        std::vector<Integer> given(count);
        for (std::size_t i = 0; i < count; ++i) {
            given[i] = i < extreme.size()       ? extreme[i]
                       : i < 2 * extreme.size() ? extreme[random() % extreme.size()]
                                                : static_cast<Integer>(random());
            exact[i] += given[i];
        }
        kernels.widen_integers[number](next.data(), reinterpret_cast<std::byte*>(given.data()),
                                       count);
        add(sums.data(), sums.data(), next.data(), count);
    }
    std::vector<Integer> average(count);
    kernels.average[number](reinterpret_cast<std::byte*>(average.data()), sums.data(), count,
                            ranks);
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(average[i], static_cast<Integer>(exact[i] / ranks))
            << "element " << i << " of " << to_string(type) << ", " << ranks << " ranks";
}

TEST_P(KernelTest, AveragesOfIntegersAreExactAndRoundedTowardsZero) {
    for (const int ranks : {2, 3, 7, 64, 300, 65535}) {
        check_averages<std::uint8_t>(kernels(), DataType::kUint8, ranks);
        check_averages<std::int8_t>(kernels(), DataType::kInt8, ranks);
        check_averages<std::uint16_t>(kernels(), DataType::kUint16, ranks);
        check_averages<std::int16_t>(kernels(), DataType::kInt16, ranks);
        check_averages<std::uint32_t>(kernels(), DataType::kUint32, ranks);
        check_averages<std::int32_t>(kernels(), DataType::kInt32, ranks);
        check_averages<std::uint64_t>(kernels(), DataType::kUint64, ranks);
        check_averages<std::int64_t>(kernels(), DataType::kInt64, ranks);
    }
}

TEST_P(KernelTest, DivideAndScaleRoundOnce) {
    for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
        const auto before = random_elements(type, 1000, 5);
        auto divided = before;
        auto scaled = before;
        kernels().divide[static_cast<std::size_t>(type)](divided.data(), 1000, 3);
        kernels().scale[static_cast<std::size_t>(type)](scaled.data(), before.data(), 1000, 0.3);
        const auto& half = reference::half_of(type);
        for (std::size_t i = 0; i < 1000; ++i) {
            const auto value = static_cast<float>(reference::decode(
                half, reference::as<std::uint16_t>(element(before.data(), i, type))));
            ASSERT_TRUE(
                reference::same(type, element(divided.data(), i, type),
                                reference::bytes_of(reference::encode(half, value / 3.0F))));
            ASSERT_TRUE(
                reference::same(type, element(scaled.data(), i, type),
                                reference::bytes_of(reference::encode(half, value * 0.3F))));
        }
    }
}

TEST_P(KernelTest, ComplexNumbersScaleAndDivideBothParts) {
    std::vector<std::complex<double>> values = {{1, -2}, {3, 4}};
    auto* const bytes = reinterpret_cast<std::byte*>(values.data());
    kernels().scale[static_cast<std::size_t>(DataType::kComplex128)](bytes, bytes, 2, 0.5);
    EXPECT_EQ(values[0], std::complex<double>(0.5, -1));
    kernels().divide[static_cast<std::size_t>(DataType::kComplex128)](bytes, 2, 2);
    EXPECT_EQ(values[1], std::complex<double>(0.75, 1));
}

INSTANTIATE_TEST_SUITE_P(Levels, KernelTest,
                         testing::ValuesIn(arithmetic::levels().begin(),
                                           arithmetic::levels().end()),
                         [](const auto& level) { return std::string(level.param.name); });

TEST(ArithmeticTest, PairsWithoutMeaningAreNamed) {
    for (const auto& [type, op] : {std::pair{DataType::kFloat32, ReduceOp::kBxor},
                                   std::pair{DataType::kComplex64, ReduceOp::kMax},
                                   std::pair{DataType::kBool, ReduceOp::kAvg},
                                   std::pair{DataType::kBytes, ReduceOp::kSum}}) {
        const Status status = combine_for(type, op).status();
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), HasSubstr(std::string(to_string(type))));
        EXPECT_THAT(status.message(), HasSubstr(std::string(to_string(op))));
    }
}

TEST(ArithmeticTest, PremultiplyWorksInPlaceAndRefusesIntegers) {
    std::vector<float> values = {1, 2, 3};
    auto* const bytes = reinterpret_cast<std::byte*>(values.data());
    ASSERT_TRUE(premultiply(DataType::kFloat32, bytes, bytes, 3, 0.5).is_ok());
    EXPECT_THAT(values, testing::ElementsAre(0.5F, 1.0F, 1.5F));
    EXPECT_EQ(premultiply(DataType::kInt32, bytes, bytes, 3, 2).code(), StatusCode::kUnsupported);
}

TEST(ArithmeticTest, CopyMovesExactlyTheBytes) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{4095}, std::size_t{9'000'001}}) {
        const auto content = random_elements(DataType::kUint8, size, size);
        Unaligned target{std::vector<std::byte>(size)};
        copy_bytes(target.data(), content.data(), size);
        EXPECT_TRUE(std::equal(content.begin(), content.end(), target.data()));
        EXPECT_TRUE(target.guards_hold());
    }
}

}  // namespace
}  // namespace pccl::arithmetic
