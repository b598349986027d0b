// SPDX-License-Identifier: Apache-2.0

// Lists of blocks, against plain copies of the same blocks.
#include "csrc/p2p/transfers/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "csrc/base/ids.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using PlanTest = Pair;

std::vector<Extent> blocks_at(std::span<const std::uint64_t> offsets, std::uint64_t bytes) {
    std::vector<Extent> blocks;
    for (const std::uint64_t offset : offsets) blocks.push_back({offset, bytes});
    return blocks;
}

TEST_P(PlanTest, ScatteredBlocksLandWherePlainCopiesPutThem) {
    constexpr std::uint64_t kBlock = 512;
    constexpr std::uint64_t kCount = kMiB / kBlock;
    std::vector<std::uint64_t> here(kCount);
    std::iota(here.begin(), here.end(), 0);
    for (auto& offset : here) offset *= kBlock;
    std::vector<std::uint64_t> there = here;
    std::mt19937 random(7);
    std::ranges::shuffle(here, random);
    std::ranges::shuffle(there, random);
    auto expected = mine_.bytes();
    for (std::size_t i = 0; i < kCount; ++i)
        std::copy_n(theirs_.bytes().begin() + static_cast<std::ptrdiff_t>(there[i]), kBlock,
                    expected.begin() + static_cast<std::ptrdiff_t>(here[i]));
    const auto plan =
        Plan::make({mine_.local, blocks_at(here, kBlock)}, {remote_, blocks_at(there, kBlock)});
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    ASSERT_EQ(ended(client_->post(transport::RmaOp::kRead, *plan)).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), expected);
}

TEST_P(PlanTest, StridedBlocksLandWherePlainCopiesPutThem) {
    for (const std::uint64_t bytes : {1U, 100U, 4096U, 30'000U}) {
        const std::uint64_t count = kBytes / (2 * bytes + 3);
        const StridedExtents here{.base = 5, .bytes = bytes, .stride = bytes + 2, .count = count};
        const StridedExtents there{.base = 1, .bytes = bytes, .stride = 2 * bytes, .count = count};
        auto expected = mine_.bytes();
        for (std::uint64_t i = 0; i < count; ++i)
            std::copy_n(theirs_.bytes().data() + there.base + i * there.stride, bytes,
                        expected.data() + here.base + i * here.stride);
        const auto plan = Plan::make({mine_.local, here}, {remote_, there});
        ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
        const auto work = client_->post(transport::RmaOp::kRead, *plan);
        ASSERT_EQ(ended(work).to_string(), "ok");
        EXPECT_EQ(mine_.bytes(), expected) << bytes;
        EXPECT_EQ(work->stats().pieces, count);
    }
}

TEST_P(PlanTest, AsManyBlocksAsThereMayBeAreCountedByTheirNumber) {
    const StridedExtents here{.base = 8, .bytes = 24, .stride = 0, .count = Extents::kMost};
    StridedExtents there{.base = 0, .bytes = 24, .stride = 0, .count = Extents::kMost};
    const auto plan = Plan::make({mine_.local, here}, {remote_, there});
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    EXPECT_EQ((*plan)->bytes(), 24 * Extents::kMost);
    there.bytes = 23;
    EXPECT_THAT(Plan::make({mine_.local, here}, {remote_, there}).status().to_string(),
                testing::HasSubstr("block 0 has 24 bytes here and 23 there"));
}

TEST_P(PlanTest, PiecesAreAsShortAsRequested) {
    const Extent all{0, kBytes};
    const auto plan = Plan::make({mine_.local, all}, {remote_, all}, 100'000);
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    const auto work = client_->post(transport::RmaOp::kRead, *plan);
    ASSERT_EQ(ended(work).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
    EXPECT_EQ(work->stats().pieces, (kBytes + 99'999) / 100'000);
    for (const std::uint64_t longest : {std::uint64_t{0}, Plan::kLongestPiece + 1})
        EXPECT_EQ(Plan::make({mine_.local, all}, {remote_, all}, longest).status().code(),
                  StatusCode::kInvalidArgument);
}

TEST_P(PlanTest, IndicesChooseBlocksAgainAndAgain) {
    const StridedExtents column{.base = 3, .bytes = 5, .stride = 11, .count = 100};
    const auto plan = Plan::make({mine_.local, column}, {remote_, column}).value();
    auto expected = theirs_.bytes();
    for (const std::vector<std::uint32_t>& indices :
         {std::vector<std::uint32_t>{99, 0, 42}, std::vector<std::uint32_t>{7}}) {
        for (const std::uint32_t index : indices)
            std::copy_n(mine_.bytes().begin() + 3 + 11 * index, 5,
                        expected.begin() + 3 + 11 * index);
        ASSERT_EQ(ended(client_->post(transport::RmaOp::kWrite, plan, indices)).to_string(), "ok");
        EXPECT_EQ(theirs_.bytes(), expected);
    }
    EXPECT_EQ(client_->post(transport::RmaOp::kWrite, plan, std::vector<std::uint32_t>{100})
                  .status()
                  .code(),
              StatusCode::kInvalidArgument);
}

TEST_P(PlanTest, BlocksThatTouchGoAsOnePiece) {
    const StridedExtents rows{.base = 0, .bytes = 1000, .stride = 1000, .count = 1000};
    const StridedExtents gaps{.base = 0, .bytes = 1000, .stride = 1001, .count = 1000};
    const auto pieces = [&](const StridedExtents& there) {
        const Work work = client_
                              ->post(transport::RmaOp::kRead,
                                     Plan::make({mine_.local, rows}, {remote_, there}).value())
                              .value();
        EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok");
        EXPECT_EQ(work.stats().blocks, 1000U);
        return work.stats().pieces;
    };
    EXPECT_EQ(pieces(rows), 1U);
    EXPECT_EQ(pieces(gaps), 1000U);
}

TEST_P(PlanTest, BlocksOfNoBytesAreDone) {
    const StridedExtents none{.base = 0, .bytes = 0, .stride = 10, .count = 1000};
    const auto before = mine_.bytes();
    const auto plan = Plan::make({mine_.local, none}, {remote_, none}).value();
    EXPECT_EQ(ended(client_->post(transport::RmaOp::kRead, plan, {}, bytes_of("done"))).to_string(),
              "ok");
    EXPECT_EQ(mine_.bytes(), before);
    EXPECT_EQ(server_->await_notifications(test_deadline()).size(), 1U);
}

TEST_P(PlanTest, WhatDoesNotFitIsNamed) {
    const auto code = [&](const Extents& here, const Extents& there) {
        return Plan::make({mine_.local, here}, {remote_, there}).status().code();
    };
    const StridedExtents fine{.base = 0, .bytes = 8, .stride = 8, .count = 10};
    EXPECT_EQ(code(fine, fine), StatusCode::kOk);
    EXPECT_EQ(code(fine, std::vector<Extent>{{0, 8}}), StatusCode::kInvalidArgument);
    EXPECT_EQ(code(fine, StridedExtents{0, 9, 9, 10}), StatusCode::kInvalidArgument);
    EXPECT_EQ(code(fine, StridedExtents{kBytes - 8, 8, 1, 10}), StatusCode::kInvalidArgument);
    EXPECT_EQ(code(fine, StridedExtents{0, 8, ~0ULL / 4, 10}), StatusCode::kInvalidArgument);
    const StridedExtents endless{0, 0, 0, ~0ULL};
    EXPECT_EQ(code(endless, endless), StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Transports, PlanTest, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace pccl::p2p
