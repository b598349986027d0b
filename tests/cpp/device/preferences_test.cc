// SPDX-License-Identifier: Apache-2.0

// What the library plans where a group's users prefer something.

#include "csrc/device/launch/preferences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "csrc/device/launch/planned_launches.h"
#include "csrc/kernels/launch.h"

namespace pccl::device {
namespace {

using enum CollectiveKind;
using kernels::Protocol;
using ::testing::HasSubstr;

constexpr std::array kKinds{kAllReduce, kReduce,    kReduceScatter, kAllGather,
                            kAllToAll,  kBroadcast, kGather,        kScatter};
constexpr std::array kGroups{2, 3, 8};
constexpr std::array<std::size_t, 7> kSizes{
    1, 4096, 20'000, kernels::kMostLLBytes, 1 << 20, 9 << 20, std::size_t{1} << 29};

/// Calls check(kind, bytes, launches) of all of them.
template <typename Check>
void for_each_launch(const Preferences& preferences, Check check) {
    for (const int gpus : kGroups)
        for (const CollectiveKind kind : kKinds)
            for (const std::size_t bytes : kSizes)
                for (const PlannedLaunch& launch :
                     planned_launches(kind, bytes, gpus, preferences)) {
                    SCOPED_TRACE(testing::Message()
                                 << launch.kernel << " of " << bytes << " bytes among " << gpus);
                    check(kind, launch);
                }
}

TEST(PreferencesTest, NoLaunchHasMoreBlocks) {
    for (const int most_blocks : {1, 3, 16, 100})
        for_each_launch({.most_blocks = most_blocks},
                        [&](CollectiveKind, const PlannedLaunch& each) {
                            EXPECT_LE(each.plan.blocks, most_blocks);
                            EXPECT_TRUE(kernels::check_plan(each.plan, each.bytes).is_ok());
                        });
}

TEST(PreferencesTest, SmallOnesGoByLLInFewBlocksToo) {
    const auto plan = planned_launches(kAllReduce, 20'000, 2, {.most_blocks = 16}).front().plan;
    EXPECT_EQ(plan.protocol, Protocol::kLL);
    EXPECT_EQ(plan.threads, 256);
}

TEST(PreferencesTest, DirectIsPossibleEverywhere) {
    for_each_launch({.protocol = Protocol::kDirect}, [](CollectiveKind, const PlannedLaunch& each) {
        EXPECT_EQ(each.plan.protocol, Protocol::kDirect);
    });
}

TEST(PreferencesTest, LLCarriesWhatItHasRoomFor) {
    for_each_launch({.protocol = Protocol::kLL},
                    [](CollectiveKind kind, const PlannedLaunch& each) {
                        const bool is_known = kind != kGather && kind != kScatter;
                        const bool fits = each.bytes <= kernels::kMostLLBytes;
                        EXPECT_EQ(each.plan.protocol == Protocol::kLL, is_known && fits);
                    });
}

TEST(PreferencesTest, CopyEnginesMoveBlocksAsTheyAre) {
    for_each_launch({.protocol = Protocol::kCopyEngine},
                    [](CollectiveKind kind, const PlannedLaunch& each) {
                        if (kind == kAllGather || kind == kAllToAll) {
                            EXPECT_EQ(each.kernel, "copy engines");
                        }
                        if (kind == kAllReduce && each.kernel == "all_reduce") {
                            EXPECT_NE(each.plan.protocol, Protocol::kCopyEngine);
                        }
                    });
}

TEST(PreferencesTest, PushesAreStaggeredWhereAKernelCan) {
    for_each_launch({.protocol = Protocol::kStaggered},
                    [](CollectiveKind kind, const PlannedLaunch& each) {
                        if (kind == kAllToAll) {
                            EXPECT_EQ(each.plan.protocol, Protocol::kStaggered);
                        }
                        if (kind == kBroadcast) {
                            EXPECT_NE(each.plan.protocol, Protocol::kStaggered);
                        }
                    });
}

TEST(PreferencesTest, WhatCannotBeIsRefused) {
    for (const int most_blocks : {-1, 0, 129})
        EXPECT_THAT(check_preferences({.most_blocks = most_blocks}).message(),
                    HasSubstr("from 1 to 128"));
    EXPECT_TRUE(check_preferences({.most_blocks = 128}).is_ok());
    EXPECT_THAT(protocol_named("LL").status().message(),
                HasSubstr("'LL' is no protocol: ll, direct, staggered, copy_engine"));
}

// What ranks send each other does not change with the names that users write.
TEST(PreferencesTest, KeepTheirTextBetweenRanks) {
    const Preferences own{.most_blocks = 8, .protocol = Protocol::kStaggered};
    EXPECT_EQ(to_string(own), "0 8 turns");
    for (std::string_view text : {"0 8 turns", "0 8 staggered"}) {
        const auto read = parse_preferences(text);
        ASSERT_TRUE(read.is_ok());
        EXPECT_EQ(read->protocol, own.protocol);
    }
}

}  // namespace
}  // namespace pccl::device
