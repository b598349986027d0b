// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/mapping.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/process_memory.h"
#include "tests/fakes/forked_child.h"

namespace pccl::transport {
namespace {

bool always() { return true; }

bool are_all(std::span<const std::byte> bytes, std::byte value) {
    return std::ranges::all_of(bytes, [value](std::byte each) { return each == value; });
}

/// A mapping, and what another process sees of it.
class MappingTest : public testing::Test {
   protected:
    static constexpr std::size_t kBytes = 9 * kMiB + 1234;

    Mapping mapping_ = Mapping::shareable("test", kBytes).value();
    std::span<std::byte> mine_ = mapping_.memory();
    Mapping view_ =
        Mapping::of_process(describe_file(mapping_.file()).value(), {.bytes = kBytes}).value();
    std::span<std::byte> theirs_ = view_.memory();
};

TEST_F(MappingTest, WhatIsMadePrivateStaysAndIsReachedByNobodyElse) {
    std::ranges::fill(theirs_.first(kBytes / 2), std::byte{5});
    std::byte* const before = mine_.data();
    ASSERT_EQ(make_private(mine_, mapping_.file(), 0, &always).to_string(), "ok");
    std::ranges::fill(theirs_, std::byte{9});
    EXPECT_EQ(mapping_.memory().data(), before);
    EXPECT_TRUE(are_all(mine_.first(kBytes / 2), std::byte{5}));
    EXPECT_TRUE(are_all(mine_.subspan(kBytes / 2), std::byte{0}));
    std::ranges::fill(mine_, std::byte{7});
    EXPECT_TRUE(are_all(theirs_, std::byte{9}));
    EXPECT_TRUE(are_all(mine_, std::byte{7}));
}

TEST_F(MappingTest, ThePagesThatAreLeftGoBackToTheMachine) {
    std::ranges::fill(mine_, std::byte{5});
    EXPECT_GE(bytes_taken(mapping_.file()), kBytes);
    ASSERT_TRUE(make_private(mine_, mapping_.file(), 0, &always).is_ok());
    EXPECT_EQ(bytes_taken(mapping_.file()), 0U);
}

TEST_F(MappingTest, NothingThatAnotherThreadWritesMeanwhileIsLost) {
    for (int round = 0; round < 10; ++round) {
        Mapping mapping = Mapping::shareable("test", kBytes).value();
        const std::span<std::byte> bytes = mapping.memory();
        std::atomic<bool> is_over{false};
        std::uint64_t written = 0;
        std::thread writer([&] {
            while (!is_over) {
                ++written;
                for (std::size_t at = 64; at < kBytes; at += 4096)
                    std::memcpy(&bytes[at], &written, sizeof written);
            }
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(round));
        EXPECT_TRUE(make_private(bytes, mapping.file(), 0, &always).is_ok());
        is_over = true;
        writer.join();
        for (std::size_t at = 64; at < kBytes; at += 4096)
            ASSERT_EQ(std::memcmp(&bytes[at], &written, sizeof written), 0) << at;
    }
}

TEST_F(MappingTest, APartOfAPageIsNotTakenFromOthers) {
    EXPECT_EQ(make_private(mine_.first(100), mapping_.file(), 0, &always).code(),
              StatusCode::kUnsupported);
    EXPECT_EQ(make_private(mine_.subspan(100), mapping_.file(), 100, &always).code(),
              StatusCode::kUnsupported);
    theirs_[0] = std::byte{3};
    EXPECT_EQ(mine_[0], std::byte{3});
    EXPECT_TRUE(make_private(mine_.subspan(8192), mapping_.file(), 8192, &always).is_ok());
    theirs_[1] = std::byte{4};
    theirs_[8192] = std::byte{4};
    EXPECT_EQ(mine_[1], std::byte{4});
    EXPECT_EQ(mine_[8192], std::byte{0});
}

TEST_F(MappingTest, ABarredPageStaysBarred) {
    Mapping page = Mapping::anonymous(4096).value();
    const std::byte* const at = page.memory().data();
    ASSERT_TRUE(std::move(page).bar().is_ok());
    std::vector<std::byte> here(8);
    const sys::ProcessPiece piece{reinterpret_cast<std::uint64_t>(at), here};
    EXPECT_FALSE(sys::read_living_process(::getpid(), {&piece, 1}).is_ok());
    EXPECT_FALSE(sys::write_living_process(::getpid(), {piece.there}, {}).value());
}

TEST_F(MappingTest, MoreThanAFileMayHaveEndsNoProcess) {
    fakes::ForkedChild limited([] {
        const rlimit most{.rlim_cur = 1 * kMiB, .rlim_max = 1 * kMiB};
        if (::setrlimit(RLIMIT_FSIZE, &most) != 0) return 2;
        const Status refused = Mapping::shareable("test", 2 * kMiB).status();
        return refused.code() == StatusCode::kResourceExhausted ? 0 : 1;
    });
    EXPECT_EQ(limited.join(), 0);
}

}  // namespace
}  // namespace pccl::transport
