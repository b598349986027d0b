// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/selection/tuning.h"

#include <gtest/gtest.h>

#include <string>

namespace pccl::comm {
namespace {

using schedule::CollectiveKind;

constexpr std::string_view kMeasured =
    "# a heading\n"
    "\n"
    "all_reduce 2 0 shm_one_shot\n"
    "all_reduce 2 65536\tshm_two_shot\r\n"
    "all_reduce 8 0 shm_two_shot\n"
    "broadcast 2 1024 shm_direct";

TEST(Tuning, GivesTheFastestOfTheNearestMeasurementBelow) {
    const Tuning tuning = Tuning::parse(kMeasured).value();
    EXPECT_EQ(tuning.fastest(CollectiveKind::kAllReduce, 2, 65535), "shm_one_shot");
    EXPECT_EQ(tuning.fastest(CollectiveKind::kAllReduce, 2, 65536), "shm_two_shot");
    EXPECT_EQ(tuning.fastest(CollectiveKind::kAllReduce, 7, 1 << 30), "shm_two_shot");
    EXPECT_EQ(tuning.fastest(CollectiveKind::kAllReduce, 100, 1), "shm_two_shot");
    EXPECT_EQ(tuning.fastest(CollectiveKind::kBroadcast, 2, 1023), "");
    EXPECT_EQ(tuning.fastest(CollectiveKind::kAllGather, 2, 4096), "");
    EXPECT_EQ(Tuning().fastest(CollectiveKind::kAllReduce, 2, 1), "");
}

TEST(Tuning, IdentifiesCapsulesByTheirDigests) {
    schedule::ScheduleSource ring;
    ring.name = "ring4";
    ring.digest = 0x85d1;
    const Tuning tuning = Tuning::parse(
                              "topology 0f3a\n"
                              "capsule ring4@00000000000085d1\n"
                              "all_reduce 4 0 ring4@00000000000085d1\n")
                              .value();
    EXPECT_EQ(tuning.topology(), "0f3a");
    EXPECT_EQ(tuning.fastest(CollectiveKind::kAllReduce, 4, 0), tuned_name(ring));
    EXPECT_TRUE(tuning.has_measured(ring));
    ring.digest += 1;
    EXPECT_FALSE(tuning.has_measured(ring));
}

TEST(Tuning, NamesTheWrongLine) {
    const auto refused = [](const std::string& text) {
        return Tuning::parse("all_reduce 2 0 ring\n" + text).status();
    };
    for (const char* line :
         {"topology", "topology a b", "capsule", "capsule ring4@01 2", "all_reduced 2 0 ring",
          "all_reduce two 0 ring", "all_reduce 2 -1 ring", "all_reduce 2 0",
          "all_reduce 2 0 ring ring", "all_reduce 2 99999999999999999999 ring"}) {
        EXPECT_EQ(refused(line).code(), StatusCode::kInvalidArgument) << line;
        EXPECT_NE(refused(line).message().find("line 2"), std::string::npos) << line;
    }
    EXPECT_EQ(refused(std::string(Tuning::kMostBytes, '#')).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::comm
