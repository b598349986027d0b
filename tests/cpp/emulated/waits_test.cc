// SPDX-License-Identifier: Apache-2.0

// Waits of kernels end: they name who is missing, and an abort ends them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/few_threads.h"

namespace pccl::comm {
namespace {

using kernels::kFewThreads;
using kernels::LaunchPlan;
using kernels::Protocol;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Order = fakes::FakeCudaDriver::Order;
using What = Order::What;

/// What is launched by one call.
class EmulatedWaitTest : public ::testing::TestWithParam<std::vector<Case>> {};

TEST_P(EmulatedWaitTest, AMissingRankIsNamed) {
    const fakes::DeviceRanksOptions options{.size = 3, .timeout = milliseconds(3000)};
    fakes::run_device_ranks(options, [](fakes::DeviceRank& member) {
        const RunTogether run(GetParam(), member);
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
        const RunTogether run(GetParam(), member);
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

TEST(EmulatedTimeoutTest, TheCallsOwnOrTheGroupsAsItIsNow) {
    for (const bool is_set : {false, true})
        fakes::run_device_ranks({.size = 2}, [is_set](fakes::DeviceRank& member) {
            const Case call{.count = 1000, .plan = kFewThreads};
            const CaseRun run(call, member);
            ASSERT_TRUE(run.launch().is_ok());
            member.together.arrive_and_wait();
            if (member.group.rank() == 1) return;
            if (is_set) member.group.set_timeout(milliseconds(300));
            device::DeviceLaunch wanted{.plan = kFewThreads};
            if (!is_set) wanted.timeout = milliseconds(300);
            ASSERT_TRUE(member.group.launch(run.collective(), nullptr, wanted).is_ok());
            EXPECT_EQ(member.group.health().code(), StatusCode::kTimeout);
            EXPECT_TRUE(member.group.has_given_up());
        });
}

/// Rank 0 gives up waiting for rank 1 long before rank 2 would, which waits for it, too.
TEST(EmulatedTimeoutTest, ARankThatGivesUpNotifiesTheOthers) {
    fakes::run_device_ranks(
        {.size = 3, .timeout = milliseconds(60'000)}, [](fakes::DeviceRank& member) {
            const Case call{.count = 1000, .plan = kFewThreads};
            const CaseRun run(call, member);
            ASSERT_TRUE(run.launch().is_ok());
            member.together.arrive_and_wait();
            const Rank rank = member.group.rank();
            if (rank == 0) member.group.set_timeout(milliseconds(300));
            if (rank != 1) {
                ASSERT_TRUE(
                    member.group.launch(run.collective(), nullptr, {.plan = kFewThreads}).is_ok());
            }
            while (member.group.health().is_ok()) std::this_thread::yield();
            EXPECT_EQ(member.group.health().code(),
                      rank == 1 ? StatusCode::kPeerLost : StatusCode::kTimeout);
            EXPECT_EQ(member.group.health().peer(), rank == 1 ? 0 : 1);
            EXPECT_THAT(member.group.health().message(), HasSubstr("rank 0 waited for rank 1"));
        });
}

/// What launch(stream) asks of the driver, in a stream, twice in a graph, and in another stream.
template <typename Launch>
std::vector<Order> orders_of(fakes::FakeCudaDriver& driver, Launch launch) {
    std::array<int, 3> streams{};
    driver.capture(&streams[1], 1);
    static_cast<void>(driver.take_orders());
    for (const std::size_t in : {0, 1, 1, 2}) EXPECT_TRUE(launch(&streams.at(in)).is_ok());
    return driver.take_orders();
}

/// What is asked of one event.
std::vector<What> requested_of(sys::cuda::Event event, const std::vector<Order>& orders) {
    std::vector<What> requested;
    for (const Order& order : orders)
        if (order.event == event) requested.push_back(order.what);
    return requested;
}

auto is_one_order() {
    return ::testing::ElementsAre(What::kRecord, What::kAwaitInGraph, What::kRecordInGraph,
                                  What::kRecordInGraph, What::kAwait, What::kRecord);
}

TEST(EmulatedOrderTest, CollectivesInAGraphAndOutsideKeepOneOrder) {
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        const Case call{};
        const CaseRun run(call, member);
        const auto orders = orders_of(member.driver, [&](kernels::Stream on) {
            return member.group.launch(run.collective(), on);
        });
        ASSERT_EQ(orders.size(), 6U);
        EXPECT_THAT(requested_of(orders.front().event, orders), is_one_order());
    });
}

/// Messages of each direction, and each direction alone.
TEST(EmulatedOrderTest, MessagesInAGraphAndOutsideKeepTwoOrders) {
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        auto* const memory = std::bit_cast<std::byte*>(member.driver.allocate(32));
        const Rank peer = 1 - member.group.rank();
        const device::PeerMessage send{.peer = peer, .data = memory, .bytes = 16};
        const device::PeerMessage receive{.peer = peer, .data = memory + 16, .bytes = 16};
        const auto orders = orders_of(member.driver, [&](kernels::Stream on) {
            return member.group.exchange({.sends = {&send, 1}, .receives = {&receive, 1}}, on);
        });
        ASSERT_EQ(orders.size(), 12U);
        const sys::cuda::Event sends = orders.front().event;
        const sys::cuda::Event receives = orders.back().event;
        EXPECT_THAT(requested_of(sends, orders), is_one_order());
        EXPECT_THAT(requested_of(receives, orders), is_one_order());
        int stream = 0;
        const bool is_sending = member.group.rank() == 0;
        EXPECT_TRUE((is_sending ? member.group.exchange({.sends = {&send, 1}}, &stream)
                                : member.group.exchange({.receives = {&receive, 1}}, &stream))
                        .is_ok());
        const auto one_way = member.driver.take_orders();
        EXPECT_EQ(one_way.size(), 2U);
        EXPECT_THAT(requested_of(is_sending ? sends : receives, one_way),
                    ::testing::ElementsAre(What::kAwait, What::kRecord));
    });
}

/// What follows on the heap counts on it (csrc/abi/device_team.h), also where nobody waits for data
/// of who is late: here the root is done when the first of a chain has its message.
TEST(EmulatedScheduleTest, NobodyLeavesBeforeAllHaveCome) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kDirect}) {
        std::atomic<bool> has_come = false;
        fakes::run_device_ranks({.size = 4}, [&](fakes::DeviceRank& member) {
            const Case broadcast{.kind = CollectiveKind::kBroadcast,
                                 .plan = LaunchPlan{protocol, 4, 192},
                                 .algorithm = "ring"};
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

using Cases = std::vector<Case>;

constexpr Case kSmall{.type = DataType::kBfloat16};
constexpr Case kLong{.type = DataType::kBfloat16, .count = 150'000};

INSTANTIATE_TEST_SUITE_P(Ways, EmulatedWaitTest,
                         ::testing::Values(Cases{{.plan = LaunchPlan{Protocol::kLL, 1, 32}}},
                                           Cases{{.plan = kFewThreads}},
                                           Cases{{.plan = LaunchPlan{Protocol::kStaggered, 2, 64}}},
                                           Cases{
                                               {.kind = CollectiveKind::kAllGather,
                                                .plan = LaunchPlan{Protocol::kCopyEngine, 2, 64}}},
                                           Cases{{.algorithm = "ring"}}, Cases{kSmall, kSmall},
                                           Cases{kSmall, kRunsLongOnes ? kLong : kSmall}));

}  // namespace
}  // namespace pccl::comm
