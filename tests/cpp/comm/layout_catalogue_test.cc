// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/model/layout_catalogue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/comm/selection/selector.h"
#include "tests/cpp/comm/selections.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {
namespace {

/// A torus of 3 x 3: none of its rings is in the order of ranks.
TEST(SelectorTest, GoesRoundARingOfTheLinksThatThereAre) {
    std::vector<schedule::DirectedLink> links;
    for (Rank rank = 0; rank < 9; ++rank)
        for (const Rank other : {rank / 3 * 3 + (rank + 1) % 3, (rank + 3) % 9}) {
            links.push_back({rank, other});
            links.push_back({other, rank});
        }
    const auto torus = std::make_shared<const schedule::LinkGraph>(9, links);
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
        for (Rank rank = 0; rank < 9; ++rank) {
            const std::string wanted = std::string(schedule::to_string(kind)) + "=ring";
            Selector selector = selector_of(rank, 9, kBuffer, {.wanted = wanted, .tuning = {}});
            selector.restrict_to(torus);
            const auto program = decision_of(selector, kind, 9, 64 * kKiB).program;
            ASSERT_NE(program, nullptr);
            ASSERT_EQ(program->send_ports.size(), 1U);
            EXPECT_TRUE(torus->has(rank, program->send_ports.front().peer)) << rank;
        }
}

}  // namespace
}  // namespace pccl::comm
