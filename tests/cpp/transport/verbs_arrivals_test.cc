// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "csrc/transport/verbs/arrivals.h"

namespace pccl::transport::verbs {
namespace {

TEST(ArrivalsTest, GapsEndWhenTheyAreFilled) {
    Arrivals arrivals;
    EXPECT_EQ(arrivals.end(), 0U);
    arrivals.add(10, 20);
    arrivals.add(30, 40);
    EXPECT_EQ(arrivals.end(), 0U);
    arrivals.add(0, 10);
    EXPECT_EQ(arrivals.end(), 20U);
    arrivals.add(20, 30);
    EXPECT_EQ(arrivals.end(), 40U);
}

TEST(ArrivalsTest, RepeatedAndOverlappingPartsCountOnce) {
    Arrivals arrivals;
    arrivals.add(0, 10);
    arrivals.add(0, 10);
    arrivals.add(2, 5);
    EXPECT_EQ(arrivals.end(), 10U);
    arrivals.add(20, 40);
    arrivals.add(20, 25);
    arrivals.add(22, 60);
    arrivals.add(5, 20);
    EXPECT_EQ(arrivals.end(), 60U);
}

TEST(ArrivalsTest, PartsWithoutBytesChangeNothing) {
    Arrivals arrivals;
    arrivals.add(0, 0);
    arrivals.add(5, 5);
    EXPECT_EQ(arrivals.end(), 0U);
    arrivals.add(0, 5);
    EXPECT_EQ(arrivals.end(), 5U);
}

/// A bit for each byte.
class ArrivalBits {
   public:
    explicit ArrivalBits(std::size_t bytes) : bits_(bytes) {}
    void add(std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = begin; i < end; ++i) bits_[i] = true;
    }
    [[nodiscard]] bool has(std::uint64_t begin, std::uint64_t end) const {
        for (std::uint64_t i = begin; i < end; ++i)
            if (!bits_[i]) return false;
        return true;
    }
    [[nodiscard]] std::uint64_t end() const {
        return static_cast<std::uint64_t>(std::ranges::find(bits_, false) - bits_.begin());
    }

   private:
    std::vector<bool> bits_;
};

TEST(ArrivalsTest, RandomPartsEndWhereABitmapEnds) {
    constexpr std::uint64_t kBytes = 300;
    std::mt19937_64 random(7);
    for (int round = 0; round < 500; ++round) {
        Arrivals arrivals;
        ArrivalBits bits(kBytes);
        const std::uint64_t longest = 1 + random() % 60;
        for (int i = 0; i < 60; ++i) {
            const std::uint64_t begin = random() % kBytes;
            const std::uint64_t end = std::min(kBytes, begin + random() % longest);
            arrivals.add(begin, end);
            bits.add(begin, end);
            ASSERT_EQ(arrivals.end(), bits.end()) << "round " << round << ", part " << i;
            const std::uint64_t from = random() % kBytes;
            const std::uint64_t to = std::min(kBytes, from + 1 + random() % longest);
            ASSERT_EQ(arrivals.has(from, to), bits.has(from, to)) << from << " to " << to;
        }
    }
}

TEST(ArrivalsTest, AShuffledStreamEndsWhole) {
    constexpr std::uint64_t kPieces = 5'000;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
    for (std::uint64_t i = 0; i < kPieces; ++i) pieces.emplace_back(3 * i, 3 * i + 3);
    std::shuffle(pieces.begin(), pieces.end(), std::mt19937_64(11));
    Arrivals arrivals;
    for (const auto& [begin, end] : pieces) arrivals.add(begin, end);
    EXPECT_EQ(arrivals.end(), 3 * kPieces);
}

}  // namespace
}  // namespace pccl::transport::verbs
