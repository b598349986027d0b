// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/wire.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace pccl::nccl {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::size_t kOnePiece = std::numeric_limits<std::size_t>::max();

bool is_valid(std::uint64_t message_bytes, std::uint64_t offset, std::size_t piece_bytes = kPiece) {
    return PieceHeader{.message_bytes = message_bytes, .offset = offset}.is_valid(piece_bytes);
}

TEST(PieceHeaderTest, PiecesOfAMessageAreValid) {
    EXPECT_TRUE(is_valid(0, 0));
    EXPECT_TRUE(is_valid(1, 0));
    EXPECT_TRUE(is_valid(kPiece + 1, kPiece));
    EXPECT_TRUE(is_valid(kPiece + 1, 0, kOnePiece));
}

TEST(PieceHeaderTest, OthersAreNot) {
    EXPECT_FALSE(is_valid(kPiece, kPiece));
    EXPECT_FALSE(is_valid(2 * kPiece, 1));
    EXPECT_FALSE(is_valid(0, kPiece));
}

/// The sum of offset and length is 0 in 64 bits.
TEST(PieceHeaderTest, AnOffsetThatWrapsIsNot) {
    EXPECT_FALSE(is_valid(kPiece, 0 - static_cast<std::uint64_t>(kPiece)));
    EXPECT_FALSE(is_valid(1, std::numeric_limits<std::uint64_t>::max(), kOnePiece));
}

}  // namespace
}  // namespace pccl::nccl
