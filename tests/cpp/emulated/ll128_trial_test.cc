// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/ll128.h"
#include "tests/emulator/gpu.h"

namespace pccl::comm {
namespace {

using kernels::Protocol;

class EmulatedTornLL128Test : public ::testing::Test {
   protected:
    void SetUp() override { emulator::tear_ll128_lines(true); }
    void TearDown() override { emulator::tear_ll128_lines(false); }
};

/// On all ranks alike; what prefers them goes as if it did not.
TEST_F(EmulatedTornLL128Test, AreFoundAndNotUsed) {
    const std::vector<Case> cases{{.count = 100'003, .algorithm = "ring"},
                                  {.count = 5, .algorithm = "ring"},
                                  {.count = 5003, .plan = kByLL128, .algorithm = "ring"}};
    fakes::run_device_ranks(
        {.size = 3, .preferences = {.most_blocks = 6, .protocol = Protocol::kLL128}},
        [&](fakes::DeviceRank& member) {
            for (const Case& each : cases) {
                const CaseRun run(each, member);
                const Status status = run.launch();
                if (each.plan) {
                    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
                    continue;
                }
                ASSERT_TRUE(status.is_ok()) << status.to_string();
                run.expect_results();
            }
        });
}

}  // namespace
}  // namespace pccl::comm
