// SPDX-License-Identifier: Apache-2.0

// What the library plans where a group's users prefer something.
#include "csrc/device/launch/preferences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/device/launch/planned_launches.h"
#include "csrc/kernels/launch.h"
#include "tests/cpp/device/launch_samples.h"

namespace pccl::device {
namespace {

using kernels::Protocol;
using ::testing::HasSubstr;

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
