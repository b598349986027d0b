// SPDX-License-Identifier: Apache-2.0

// What flight records tell of kernels: in what a GPU waits, for whom, and how launches ended.
#include "csrc/device/launch/launch_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/runtime/flight/flight_dump.h"
#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/few_threads.h"

namespace pccl::comm {
namespace {

using kernels::kFewThreads;
using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

struct FlightTest : ::testing::Test {
    const std::string name =
        ::testing::UnitTest::GetInstance()->current_test_info()->name();  // of the group
};

/// What the process has recorded of `rank` in the group `name`: the group, and its entries.
struct Recorded {
    json group;
    json entries = json::array();

    Recorded(const std::string& name, Rank rank) {
        const json record = json::parse(runtime::flight_record_json("a test"));
        for (const json& one : record["groups"])
            if (one["name"] == name && one["rank"] == rank) group = one;
        for (const json& entry : record["entries"])
            if (entry["group"] == group["id"]) entries.push_back(entry);
    }
    [[nodiscard]] std::string state(std::size_t entry) const { return entries.at(entry)["state"]; }
};

/// Once a kernel of `rank` waits.
Recorded recorded_in_wait(const std::string& name, Rank rank) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    for (;;) {
        Recorded now(name, rank);
        if (!now.group["waits"].empty() || deadline.passed()) return now;
    }
}

TEST_F(FlightTest, AWaitingKernelReportsItsPeer) {
    fakes::run_device_ranks(
        {.size = 3, .timeout = milliseconds(60'000), .name = name}, [&](fakes::DeviceRank& member) {
            const Case call{.count = 1000, .plan = kFewThreads};
            const CaseRun run(call, member);
            ASSERT_TRUE(run.launch().is_ok());
            EXPECT_EQ(Recorded(name, member.group.rank()).state(0), "launched");
            member.together.arrive_and_wait();
            if (member.group.rank() == 1) {
                const Recorded stuck = recorded_in_wait(name, 0);
                EXPECT_EQ(stuck.group["device"], "cuda");
                const json& wait = stuck.group["waits"].at(0);
                EXPECT_EQ(wait["peer"], 1);
                EXPECT_EQ(wait["operation"], "all_reduce #2 (sum of 1000 int32)");
                EXPECT_EQ(wait["ticket"], stuck.entries.at(1)["ticket"]);
                EXPECT_GT(wait["seconds"], 0);
                EXPECT_EQ(stuck.state(0), "completed");
                EXPECT_EQ(Recorded(name, 1).entries.size(), 1U);
            }
            EXPECT_TRUE(run.launch().is_ok());
            member.together.arrive_and_wait();
            const Recorded after(name, member.group.rank());
            EXPECT_TRUE(after.group["waits"].empty()) << after.group;
            EXPECT_EQ(after.state(1), "launched");
        });
}

TEST_F(FlightTest, AKernelThatGaveUpIsBlamedOnWhoWasMissing) {
    fakes::run_device_ranks(
        {.size = 2, .timeout = milliseconds(2000), .name = name}, [&](fakes::DeviceRank& member) {
            const Case call{.kind = CollectiveKind::kBroadcast, .count = 8, .root = 1};
            const CaseRun run(call, member);
            ASSERT_TRUE(run.launch().is_ok());
            member.together.arrive_and_wait();
            if (member.group.rank() == 1) return;
            const Status status = run.launch();
            EXPECT_EQ(status.code(), StatusCode::kTimeout);
            EXPECT_THAT(
                status.message(),
                HasSubstr("rank 0 waited for rank 1 in broadcast #2 (8 int32, root 1), block"));
            const Recorded after(name, 0);
            EXPECT_EQ(after.state(0), "completed");
            EXPECT_EQ(after.state(1), "failed");
            EXPECT_EQ(after.entries.at(1)["blamed"], 1);
        });
}

TEST_F(FlightTest, CallsThatAreRefusedCountForNothing) {
    fakes::run_device_ranks({.size = 2, .name = name}, [&](fakes::DeviceRank& member) {
        const Case call{.count = 10};
        const CaseRun run(call, member);
        Collective wrong = run.collective();
        wrong.op = ReduceOp::kBand;
        wrong.type = DataType::kFloat32;
        EXPECT_EQ(member.group.launch(wrong, nullptr).code(), StatusCode::kUnsupported);
        EXPECT_TRUE(run.launch().is_ok());
        const Recorded record(name, member.group.rank());
        EXPECT_EQ(record.state(0), "refused");
        EXPECT_FALSE(record.entries.at(0).contains("sequence"));
        EXPECT_EQ(record.entries.at(1)["operation"], "all_reduce #1 (sum of 10 int32)");
        EXPECT_EQ(record.group["launches"]["calls"], 1);
        EXPECT_EQ(record.group["launches"]["bytes"], 40);
    });
}

TEST_F(FlightTest, CollectivesAndMessagesThatAreCalledTogetherAreOneEntry) {
    fakes::run_device_ranks({.size = 2, .name = name}, [&](fakes::DeviceRank& member) {
        const std::vector<Case> calls(3, Case{.count = 10});
        const RunTogether run(calls, member);
        ASSERT_TRUE(run.launch().is_ok());
        const CaseRun memory(calls.front(), member);
        const Block& block = memory.collective().outputs.front();
        const Rank peer = 1 - member.group.rank();
        const device::PeerMessage sent{.peer = peer, .data = block.data, .bytes = 16};
        const device::PeerMessage received{.peer = peer, .data = block.data + 16, .bytes = 16};
        ASSERT_TRUE(
            member.group.exchange({.sends = {&sent, 1}, .receives = {&received, 1}}, nullptr)
                .is_ok());
        const Recorded record(name, member.group.rank());
        EXPECT_EQ(record.entries.at(0)["operation"], "all_reduce #1 (sum of 10 int32) and 2 more");
        EXPECT_EQ(record.entries.at(1)["operation"],
                  "send to rank " + std::to_string(peer) + " (16 bytes) and 1 more");
        const json& counts = record.group["launches"];
        EXPECT_EQ(counts["calls"], 3);
        EXPECT_EQ(counts["bytes"], 120);
        EXPECT_EQ(counts["messages"], 2);
        EXPECT_EQ(counts["sent_bytes"], 16);
        EXPECT_EQ(counts["received_bytes"], 16);
        EXPECT_EQ(counts["captured"], 0);
        EXPECT_GT(counts["launch_s"], 0);
    });
}

TEST_F(FlightTest, WhatIsCapturedMayRunWheneverItsGraphDoes) {
    fakes::run_device_ranks(
        {.size = 2, .timeout = milliseconds(2000), .name = name}, [&](fakes::DeviceRank& member) {
            const Case call{.count = 10, .plan = kFewThreads};
            const CaseRun run(call, member);
            ASSERT_TRUE(run.launch().is_ok());
            member.together.arrive_and_wait();
            member.driver.capture(true);
            ASSERT_TRUE(run.launch().is_ok());
            const Recorded captured(name, member.group.rank());
            EXPECT_EQ(captured.state(1), "captured");
            EXPECT_EQ(captured.group["launches"]["calls"], 1);
            EXPECT_EQ(captured.group["launches"]["captured"], 1);
            member.together.arrive_and_wait();
            if (member.group.rank() == 0) {
                EXPECT_THAT(run.launch().message(), HasSubstr("in all_reduce #3"));
                EXPECT_EQ(Recorded(name, 0).state(0), "launched");
            }
            member.driver.capture(false);
        });
}

}  // namespace
}  // namespace pccl::comm
