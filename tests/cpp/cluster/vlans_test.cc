// SPDX-License-Identifier: Apache-2.0

// Clusters with electrical switches beside optical ones.
#include "csrc/cluster/model/vlans.h"

#include <gmock/gmock.h>

#include "csrc/cluster/cluster_context.h"
#include "tests/cpp/cluster/fake_switch.h"
#include "tests/cpp/cluster/opened_cluster.h"

namespace pccl::cluster {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kMixed = R"({
    "switches": [{"name": "a"}, {"name": "e", "kind": "electrical"}],
    "devices": [{"ports": {"a": 1, "e": 11}}, {"ports": {"a": 2, "e": 12}},
                {"ports": {"a": 3, "e": 13}}, {"ports": {"a": 4, "e": 14}}],
    "phases": {"ring": {"links": "ring"},
               "rings": {"links": [[0, 1], [1, 2], [2, 3], [3, 0], [1, 0], [0, 3]]},
               "pairs": {"links": [[0, 1], [2, 3], [0, 2]], "duplex": true}}})";

class MixedTest : public ClusterTest {
   protected:
    MixedTest() {
        fakes_.try_emplace("e", FakeTraits{.dialect = "pccl-vlan"}, Circuits{}, clock_);
        cluster_ = open(description(kMixed));
    }
    FakeSwitch& e() { return fakes_.at("e"); }

    std::unique_ptr<ClusterContext> cluster_;
};

TEST_F(MixedTest, OneTransactionSpansAnOpticalAndAnElectricalSwitch) {
    EXPECT_EQ(cluster_->switch_phase("ring", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kRingOfFour);
    EXPECT_THAT(e().running(), IsEmpty());
    // No transmitter is left for a second link of ranks 0 and 1: packets take these.
    EXPECT_EQ(cluster_->switch_phase("rings", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kRingOfFour);
    EXPECT_EQ(e().running(), (Circuits{{11, 111}, {12, 111}, {14, 111}}));
    EXPECT_EQ(cluster_->switch_phase("pairs", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kPairs);
    EXPECT_EQ(e().running(), (Circuits{{11, 111}, {13, 111}}));
    EXPECT_EQ(cluster_->inspect(std::chrono::seconds(1)).phase, "pairs");
}

TEST_F(MixedTest, BothChangeOrNone) {
    ASSERT_TRUE(cluster_->switch_phase("rings", soon()).is_ok());
    const Circuits before = e().running();
    e().traits.reject = "commit";
    EXPECT_EQ(cluster_->switch_phase("pairs", soon())->ending, Ending::kRolledBack);
    EXPECT_EQ(a().running(), kRingOfFour);
    EXPECT_EQ(e().running(), before);
    e().traits.reject = {};
    a().traits.reject = "edit-config";
    EXPECT_EQ(cluster_->switch_phase("pairs", soon())->ending, Ending::kRefused);
    EXPECT_EQ(e().running(), before);
}

TEST_F(MixedTest, PlansWhatLosesItsVlan) {
    const auto plan = make_plan(description(kMixed), "rings", "pairs");
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    ASSERT_THAT(plan->switches, SizeIs(2));
    EXPECT_EQ(plan->switches[1].change,
              (Change{.remove = {{12, 111}, {14, 111}}, .add = {{13, 111}}}));
}

}  // namespace
}  // namespace pccl::cluster
