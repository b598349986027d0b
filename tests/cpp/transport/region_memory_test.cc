// SPDX-License-Identifier: Apache-2.0

// Ranges of nameless files: who may have them, and that they are free again when nobody has.
#include "csrc/transport/region_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/shm/shm_transport.h"

namespace pccl::transport {
namespace {

using testing::HasSubstr;

constexpr std::size_t kFile = RegionMemory::kFileBytes;
constexpr std::size_t kMemoryBytes = 4 * kMiB;
constexpr std::size_t kPageBytes = 4096;

UniqueFd duplicate(int fd) { return UniqueFd(::dup(fd)); }

bool is_zero(const RegionMemory& memory) {
    return std::ranges::all_of(memory.bytes(), [](std::byte byte) { return byte == std::byte{0}; });
}

std::unique_ptr<RegionMemory> join(const RegionMemory& claimed) {
    return std::move(RegionMemory::join(duplicate(claimed.file()), claimed.extent()).value());
}

TEST(RegionMemoryTest, FurtherRegionsShareTheFirstOnesFileUntilItIsFull) {
    RegionStock stock;
    std::vector<std::shared_ptr<RegionMemory>> regions;
    for (std::size_t i = 0; i < kFile / kMemoryBytes; ++i)
        regions.push_back(stock.claim(kMemoryBytes, kMemoryBytes).value());
    for (const auto& region : regions) {
        EXPECT_TRUE(region->shares_file_with(*regions.front()));
        EXPECT_EQ(region->bytes().size(), kMemoryBytes);
    }
    EXPECT_FALSE(
        stock.claim(kMemoryBytes, kMemoryBytes).value()->shares_file_with(*regions.front()));
}

TEST(RegionMemoryTest, RangesDoNotOverlap) {
    RegionStock stock;
    const auto first = stock.claim(kMemoryBytes, kMemoryBytes).value();
    const auto second = stock.claim(2 * kMemoryBytes, kMemoryBytes).value();
    std::ranges::fill(first->bytes(), std::byte{1});
    EXPECT_TRUE(is_zero(*second));
    std::ranges::fill(second->bytes(), std::byte{2});
    EXPECT_TRUE(std::ranges::all_of(first->bytes(), [](std::byte b) { return b == std::byte{1}; }));
}

TEST(RegionMemoryTest, WhatIsLeftIsTakenBeforeANewFileIsMade) {
    RegionStock stock;
    const auto most = stock.claim(kFile - kMemoryBytes, kMemoryBytes).value();
    const auto rest = stock.claim(4 * kMemoryBytes, kMemoryBytes / 4).value();
    EXPECT_TRUE(rest->shares_file_with(*most));
    EXPECT_EQ(rest->bytes().size(), kMemoryBytes);
}

/// Of 5 ranks an eighth is no whole number of pages, and nothing can be mapped behind it.
TEST(RegionMemoryTest, GroupsOfAnyNumberOfRanksFillAFile) {
    for (const int ranks : {2, 3, 5, 6, 7, 12, 31}) {
        RegionStock stock;
        std::vector<std::shared_ptr<RegionMemory>> regions;
        do {
            auto claimed = stock.claim(shm::region_bytes(ranks), shm::least_region_bytes(ranks));
            ASSERT_TRUE(claimed.is_ok()) << ranks << " ranks, the " << regions.size()
                                         << "th: " << claimed.status().to_string();
            regions.push_back(*claimed);
        } while (regions.back()->shares_file_with(*regions.front()));
        for (const auto& region : regions) {
            EXPECT_EQ(region->extent().offset % kPageBytes, 0U) << ranks;
            EXPECT_GE(region->bytes().size(), shm::least_region_bytes(ranks)) << ranks;
        }
    }
}

TEST(RegionMemoryTest, AllWhoHoldARangeSeeTheSameBytes) {
    const auto claimed = std::move(RegionMemory::in_new_file(kMemoryBytes).value());
    const auto joined = join(*claimed);
    claimed->bytes()[kMemoryBytes - 1] = std::byte{42};
    EXPECT_EQ(joined->bytes()[kMemoryBytes - 1], std::byte{42});
}

TEST(RegionMemoryTest, ARangeIsKeptWhileAnybodyHoldsIt) {
    const auto kept = std::move(RegionMemory::in_new_file(kFile / 2).value());
    auto claimed = std::move(RegionMemory::in_file_of(*kept, kFile / 2).value());
    auto joined = join(*claimed);
    claimed.reset();
    EXPECT_EQ(*RegionMemory::in_file_of(*kept, kMemoryBytes), nullptr);
    joined.reset();
    EXPECT_NE(*RegionMemory::in_file_of(*kept, kMemoryBytes), nullptr);
}

TEST(RegionMemoryTest, AFreedRangeIsZeroWhenClaimedAgain) {
    const auto kept = std::move(RegionMemory::in_new_file(kMemoryBytes).value());
    auto freed = std::move(RegionMemory::in_file_of(*kept, kMemoryBytes).value());
    std::ranges::fill(freed->bytes(), std::byte{1});
    const RegionExtent before = freed->extent();
    freed.reset();
    const auto again = std::move(RegionMemory::in_file_of(*kept, kMemoryBytes).value());
    EXPECT_EQ(again->extent().offset, before.offset);
    EXPECT_TRUE(is_zero(*again));
}

TEST(RegionMemoryTest, AKilledHolderFreesItsRange) {
    const auto kept = std::move(RegionMemory::in_new_file(kFile / 2).value());
    const auto rest = [&] { return std::move(RegionMemory::in_file_of(*kept, kFile / 2).value()); };
    const RegionExtent extent = rest()->extent();
    const int offered = ::dup(kept->file());
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto held = std::move(RegionMemory::join(UniqueFd(offered), extent).value());
        std::ranges::fill(held->bytes(), std::byte{1});
        [[maybe_unused]] const auto written = ::write(ready[1], "x", 1);
        ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_EQ(rest(), nullptr) << "the child holds it";
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto claimed = rest();
    ASSERT_NE(claimed, nullptr);
    EXPECT_TRUE(is_zero(*claimed));
    ::close(offered);
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST(RegionMemoryTest, WhatIsNotSealedOrHasAnotherSizeIsRefused) {
    for (const std::size_t bytes : {kFile, kFile / 2}) {
        UniqueFd file(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
        if (bytes != kFile) {
            ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
        }
        const auto memory =
            RegionMemory::join(std::move(file), {.offset = 0, .bytes = kMemoryBytes});
        EXPECT_EQ(memory.status().code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(memory.status().message(), HasSubstr("expected a sealed one of 33554432"));
    }
}

TEST(RegionMemoryTest, RangesBeyondTheFileAreRefused) {
    const auto claimed = std::move(RegionMemory::in_new_file(kMemoryBytes).value());
    const RegionExtent beyond[] = {{.offset = 0, .bytes = 0},
                                   {.offset = 0, .bytes = kFile + 4096},
                                   {.offset = kFile - 4096, .bytes = 8192},
                                   {.offset = ~std::uint64_t{0} - 4095, .bytes = 8192},
                                   {.offset = 17, .bytes = 4096}};
    for (const RegionExtent& extent : beyond) {
        const auto memory = RegionMemory::join(duplicate(claimed->file()), extent);
        EXPECT_EQ(memory.status().code(), StatusCode::kInvalidArgument) << extent.offset;
    }
}

}  // namespace
}  // namespace pccl::transport
