// SPDX-License-Identifier: Apache-2.0

#include "csrc/comm/phase/network_report.h"

#include <gtest/gtest.h>

#include <string>

#include "csrc/comm/diagnosis/switching.h"

namespace pccl::comm {
namespace {

NetworkReport report_of(std::size_t switches) {
    NetworkReport report{.outcome = cluster::Ending::kRolledBack,
                         .reason = Status::unavailable("switch one: no light comes in at port 3"),
                         .total = std::chrono::milliseconds(31),
                         .dark = std::chrono::milliseconds(7),
                         .unrecorded = "the disk is full",
                         .switches = {}};
    for (std::size_t i = 0; i < switches; ++i)
        report.switches.push_back({.name = "ocs" + std::to_string(i),
                                   .fault = "port 3",
                                   .steps = {{"lock", std::chrono::microseconds(1500)}},
                                   .found = {{1, 2}},
                                   .discarded = "adds pair",
                                   .startup = "copied"});
    return report;
}

TEST(NetworkReportTest, ReachesOtherRanksWithoutTheCircuits) {
    const auto read = decode_report(encode(report_of(2), Switching::kLongestReport));
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    EXPECT_EQ(read->outcome, cluster::Ending::kRolledBack);
    EXPECT_EQ(read->reason.code(), StatusCode::kUnavailable);
    EXPECT_EQ(read->reason.message(), "switch one: no light comes in at port 3");
    EXPECT_EQ(read->total, std::chrono::milliseconds(31));
    EXPECT_EQ(read->dark, std::chrono::milliseconds(7));
    EXPECT_EQ(read->unrecorded, "the disk is full");
    ASSERT_EQ(read->switches.size(), 2U);
    const SwitchReport& second = read->switches[1];
    EXPECT_EQ(second.name, "ocs1");
    EXPECT_EQ(second.fault, "port 3");
    EXPECT_EQ(second.discarded, "adds pair");
    EXPECT_EQ(second.startup, "copied");
    ASSERT_EQ(second.steps.size(), 1U);
    EXPECT_EQ(second.steps[0].step, "lock");
    EXPECT_EQ(second.steps[0].took, std::chrono::microseconds(1500));
    EXPECT_TRUE(second.found.empty());
}

TEST(NetworkReportTest, LeavesOutTheSwitchesWhereTheyDoNotFit) {
    NetworkReport report = report_of(500);
    report.reason = Status::unavailable(std::string(10'000, 'x'));
    const std::string bytes = encode(report, Switching::kLongestReport);
    EXPECT_LE(bytes.size(), Switching::kLongestReport);
    const auto read = decode_report(bytes);
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    EXPECT_EQ(read->outcome, cluster::Ending::kRolledBack);
    EXPECT_TRUE(read->switches.empty());
    EXPECT_GT(read->reason.message().size(), 100U);
}

TEST(NetworkReportTest, RefusesEveryPrefixAndAnyByteTooMany) {
    const std::string bytes = encode(report_of(2), Switching::kLongestReport);
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_EQ(decode_report(bytes.substr(0, size)).status().code(),
                  StatusCode::kInvalidArgument)
            << size;
    EXPECT_EQ(decode_report(bytes + "x").status().code(), StatusCode::kInvalidArgument);
    std::string unknown = bytes;
    unknown[0] = 99;
    EXPECT_EQ(decode_report(unknown).status().message(), "outcome 99 of a switch");
}

}  // namespace
}  // namespace pccl::comm
