// Waits of kernels end: they name who is missing, and an abort ends them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/emulated/cases.h"

namespace pccl::comm {
namespace {

using kernels::Plan;
using kernels::Protocol;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class EmulatedWaitTest : public ::testing::TestWithParam<Case> {};

TEST_P(EmulatedWaitTest, AMissingRankIsNamed) {
    const fakes::DeviceRanksOptions options{.size = 3, .timeout = milliseconds(3000)};
    fakes::run_device_ranks(options, [](fakes::DeviceRank& member) {
        const CaseRun run(GetParam(), member);
        EXPECT_TRUE(run.launch().is_ok());
        member.together.arrive_and_wait();
        if (member.group.rank() == 1) return;
        const Status status = run.launch();
        EXPECT_EQ(status.code(), StatusCode::kTimeout);
        EXPECT_THAT(status.message(), HasSubstr("waited for rank 1"));
    });
}

TEST_P(EmulatedWaitTest, AnAbortEndsThem) {
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        const CaseRun run(GetParam(), member);
        EXPECT_TRUE(run.launch().is_ok());
        member.together.arrive_and_wait();
        if (member.group.rank() == 1) return;
        std::thread aborting([&] {
            std::this_thread::sleep_for(milliseconds(50));
            member.group.abort();
        });
        EXPECT_EQ(run.launch().code(), StatusCode::kAborted);
        aborting.join();
    });
}

/// What follows on the heap counts on it (csrc/abi/device_team.h), also where nobody waits for data
/// of who is late: here the root is done when the first of a chain has its message.
TEST(EmulatedScheduleTest, NobodyLeavesBeforeAllHaveCome) {
    for (const Protocol protocol : {Protocol::kWords, Protocol::kDirect}) {
        std::atomic<bool> has_come = false;
        fakes::run_device_ranks({.size = 4}, [&](fakes::DeviceRank& member) {
            const Case broadcast{.kind = CollectiveKind::kBroadcast,
                                 .plan = Plan{protocol, 4, 192},
                                 .algorithm = schedule::Algorithm::kRing};
            const CaseRun run(broadcast, member);
            ASSERT_TRUE(run.launch().is_ok());
            member.together.arrive_and_wait();
            if (member.group.rank() == 3) {
                std::this_thread::sleep_for(milliseconds(50));
                has_come = true;
            }
            ASSERT_TRUE(run.launch().is_ok());
            EXPECT_TRUE(has_come);
            run.expect_results();
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, EmulatedWaitTest,
                         ::testing::Values(Case{.plan = Plan{Protocol::kWords, 1, 32}},
                                           Case{.plan = Plan{Protocol::kDirect, 2, 64}},
                                           Case{.plan = Plan{Protocol::kTurns, 2, 64}},
                                           Case{.kind = CollectiveKind::kAllGather,
                                                .plan = Plan{Protocol::kEngines, 2, 64}},
                                           Case{.algorithm = schedule::Algorithm::kRing}));

}  // namespace
}  // namespace pccl::comm
