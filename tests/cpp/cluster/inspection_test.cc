// SPDX-License-Identifier: Apache-2.0

// Circuits as the switches report them, against the phases.
#include "csrc/cluster/inspection.h"

#include <gmock/gmock.h>

#include "tests/cpp/cluster/opened_cluster.h"

namespace pccl::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ClusterTest, ShowsWhereLightHasGoneSince) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    EXPECT_THAT(cluster->inspect(std::chrono::seconds(1)).switches[0].dark, IsEmpty());
    a().dark = {3};
    const Inspection inspection = cluster->inspect(std::chrono::seconds(1));
    EXPECT_EQ(inspection.phase, "ring");
    EXPECT_THAT(inspection.switches[0].dark, ElementsAre(3));
}

TEST_F(ClusterTest, ReadsAnewWhereASessionHasEnded) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    a().traits = {.drop = "get-config", .faults = 1};
    EXPECT_EQ(cluster->inspect(std::chrono::seconds(1)).phase, "ring");
    a().is_gone = true;
    const Inspection inspection = cluster->inspect(std::chrono::seconds(1));
    EXPECT_EQ(inspection.phase, "");
    EXPECT_FALSE(inspection.switches[0].status.is_ok());
    EXPECT_TRUE(inspection.switches[1].status.is_ok());
}

TEST_F(ClusterTest, ReportsThePhaseOfAnotherController) {
    auto cluster = open();
    auto other = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    ASSERT_TRUE(other->switch_phase("pairs", soon()).is_ok());
    const Status refused = cluster->switch_phase("ring", soon()).status();
    EXPECT_EQ(refused.code(), StatusCode::kMismatch);
    EXPECT_EQ(refused.message(),
              "the switches show phase pairs: somebody else has changed it since, or a switch has "
              "restarted; adopt() takes that for the current phase, and switching with adopt "
              "overwrites it");
}

TEST_F(ClusterTest, IsInterruptibleWhileASwitchIsSilent) {
    auto cluster = open();
    a().traits.hang = "get-config";
    SwitchOptions options{.step_timeout = std::chrono::hours(1)};
    options.interrupted = [] { return Status::aborted("a signal"); };
    EXPECT_THAT(
        cluster->inspect(options.step_timeout, options.interrupted).switches[0].status.message(),
        HasSubstr("no answer to read before the interruption"));
    options.adopt = true;
    EXPECT_FALSE(cluster->switch_phase("ring", options).is_ok());
}

}  // namespace
}  // namespace pccl::cluster
