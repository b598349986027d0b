// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/verbs/port_choice.h"
#include "tests/cpp/transport/verbs_links.h"

namespace pccl::transport::verbs {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ChosenPortsTest : public testing::Test {
   protected:
    Result<std::vector<std::shared_ptr<Port>>> choose(const char* hca, bool soft = false,
                                                      int gid_index = -1) {
        return choose_ports(
            {.filter = HcaFilter::parse(hca).value(), .soft = soft, .gid_index = gid_index},
            *waiter_);
    }
    std::vector<std::string> names_of(const char* hca, bool soft = false) {
        std::vector<std::string> names;
        const auto chosen = choose(hca, soft);
        EXPECT_TRUE(chosen.is_ok()) << chosen.status().to_string();
        if (!chosen.is_ok()) return names;
        for (const auto& port : *chosen) names.push_back(port->name());
        return names;
    }
    std::string reasons(const char* hca, int gid_index = -1) {
        const Status none = choose(hca, false, gid_index).status();
        EXPECT_EQ(none.code(), StatusCode::kUnavailable);
        return std::string(none.message());
    }

    std::unique_ptr<Waiter> waiter_ = Waiter::create().value();
};

TEST_F(ChosenPortsTest, ActivePortsOfHardwareAreTakenInTheOrderOfTheirNames) {
    EXPECT_THAT(names_of(""), ElementsAre("mlx5_0:1", "mlx5_1:1", "mlx5_1:2"))
        << "mlx5_3 has another link layer than the first";
    EXPECT_THAT(names_of("mlx5_1,mlx5_0"), ElementsAre("mlx5_0:1", "mlx5_1:1", "mlx5_1:2"));
    EXPECT_THAT(names_of("=mlx5_1:2"), ElementsAre("mlx5_1:2"));
}

TEST_F(ChosenPortsTest, TheFirstPortDecidesTheLinkLayer) {
    EXPECT_THAT(names_of("^mlx5_0,mlx5_1,rxe0"), ElementsAre("mlx5_3:1"));
}

TEST_F(ChosenPortsTest, EmulatedDevicesAreTakenWhereTheyAreNamed) {
    EXPECT_THAT(names_of("rxe0"), ElementsAre("rxe0:1"));
    EXPECT_THAT(names_of("", true), ElementsAre("mlx5_0:1", "mlx5_1:1", "mlx5_1:2", "rxe0:1"));
}

TEST_F(ChosenPortsTest, PortsOfOneDeviceShareItsAdapter) {
    const auto chosen = choose("mlx5_1").value();
    ASSERT_EQ(chosen.size(), 2U);
    EXPECT_EQ(chosen[0]->adapter, chosen[1]->adapter);
    EXPECT_EQ(chosen[0]->gid.type, sys::verbs::GidType::kRoceV2);
    EXPECT_TRUE(chosen[0]->gid.is_ipv4());
}

TEST_F(ChosenPortsTest, EveryPortThatDoesNotFitHasItsReason) {
    EXPECT_THAT(reasons("mlx5_2,siw0"),
                AllOf(HasSubstr("mlx5_0:1: left out by PCCL_IB_HCA"),
                      HasSubstr("mlx5_2:1: its state is DOWN; look at its cable"),
                      HasSubstr("siw0:1: an iWARP device"), HasSubstr("rxe0:1: left out")));
    EXPECT_THAT(reasons("=mlx5_0", 77), HasSubstr("mlx5_0:1: PCCL_IB_GID_INDEX=77"));
}

}  // namespace
}  // namespace pccl::transport::verbs
