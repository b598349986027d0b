// SPDX-License-Identifier: Apache-2.0

// A group that does not exist is explained as one that does.
#include "csrc/comm/selection/imagined_group.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/comm/selection/selector.h"
#include "tests/cpp/comm/distant_hosts.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;

TEST(ImaginedGroupTest, ChoosesAsOneThatExistsAndCountsOnTheSame) {
    for (const auto& places : {kInterleaved, hosts_of_four(4)})
        for (const CollectiveKind kind :
             {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kAllToAll}) {
            const bootstrap::Roster roster = roster_of(places, 10'000);
            const auto layout = *bootstrap::Layout::make(roster);
            Selector selector(roster, {.rank = 0, .layout = layout}, {});
            const auto ranks = static_cast<int>(places.size());
            const auto real = *selector.explain(kind, block_bytes(kind, kMiB, ranks));
            const auto imagined = explain(*topo::decode_job(roster.job), kind, kMiB);
            ASSERT_TRUE(imagined.is_ok()) << imagined.status().to_string();
            ASSERT_EQ(imagined->ways.size(), real.size());
            for (std::size_t i = 0; i < real.size(); ++i) {
                EXPECT_EQ(imagined->ways[i].algorithm(), real[i].algorithm());
                EXPECT_EQ(imagined->ways[i].over(), "links");
                EXPECT_EQ(imagined->ways[i].seconds, real[i].seconds);
                EXPECT_EQ(imagined->ways[i].busiest, real[i].busiest);
                EXPECT_EQ(imagined->ways[i].is_chosen, real[i].is_chosen);
            }
            EXPECT_EQ(imagined->counted_on.order, layout->order());
            EXPECT_EQ(imagined->counted_on.links, layout->describe_links());
        }
}

TEST(ImaginedGroupTest, OfOneHostHasASegment) {
    const bootstrap::Roster roster = roster_of({{0, 0}, {0, 0}, {0, 1}, {0, 1}}, 10'000);
    const auto imagined =
        explain(*topo::decode_job(roster.job), CollectiveKind::kAllReduce, 1 * kMiB);
    ASSERT_TRUE(imagined.is_ok()) << imagined.status().to_string();
    const auto chosen = std::ranges::find_if(imagined->ways, &Prediction::is_chosen);
    ASSERT_NE(chosen, imagined->ways.end());
    EXPECT_EQ(chosen->over(), "shm");
}

TEST(ImaginedGroupTest, NeedsRanksFromZeroOn) {
    auto job =
        topo::JobTopology::make({{.name = "a", .ranks = {0, 1}, .topology = machine_with(10'000)},
                                 {.name = "b", .ranks = {3, 4}, .topology = machine_with(10'000)}});
    ASSERT_TRUE(job.is_ok()) << job.status().to_string();
    const Status refused = explain(*job, CollectiveKind::kAllReduce, kMiB).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("no host has rank 2"));
}

}  // namespace
}  // namespace pccl::comm
