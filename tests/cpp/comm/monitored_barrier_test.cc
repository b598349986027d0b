// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

TEST(MonitoredBarrierTest, PassesWhenAllArriveAndNamesWhoDoesNot) {
    run_ranks({.size = 3}, [](CommunicatorImpl& comm) {
        EXPECT_TRUE(comm.monitored_barrier(std::chrono::seconds(60), false).is_ok());
        if (comm.rank() == 2) return;
        const Status status = comm.monitored_barrier(std::chrono::seconds(3), true);
        EXPECT_EQ(status.code(), StatusCode::kTimeout);
        if (comm.rank() == 0) {
            EXPECT_NE(status.message().find("Ranks 2 failed to pass"), std::string::npos)
                << status.message();
        }
    });
}

}  // namespace
}  // namespace pccl::comm
