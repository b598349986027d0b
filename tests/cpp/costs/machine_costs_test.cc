// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/machine_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace pccl::costs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kSome =
    "# a heading\n"
    "\n"
    "machine xeon-2/2\n"
    "cores 2\n"
    "boot 1234\n"
    "date 2026-11-25T21:40:03Z\n"
    "took 30.4\n"
    "load 0.5\n"
    "tries 2\n"
    "quiet 1\n"
    "caches 32768 1048576 33554432\n"
    "beat 0.25\n"
    "tcp_byte 0.125\n"
    "copy 0.0625 - 0.125 0.25\r\n";

TEST(MachineCosts, HasTheValuesOfTheTextAndDefaults) {
    const MachineCosts costs = MachineCosts::parse(kSome).value();
    const MachineCosts usual;
    EXPECT_DOUBLE_EQ(costs.core_round_trip.seconds, 0.25e-6);
    EXPECT_TRUE(costs.core_round_trip.is_measured);
    EXPECT_DOUBLE_EQ(costs.tcp_byte.seconds, 0.125e-9);
    EXPECT_DOUBLE_EQ(at(costs.copy, Level::kFirst), 0.0625e-9);
    EXPECT_EQ(costs.copy[1], usual.copy[1]);
    EXPECT_EQ(costs.wake, usual.wake);
    EXPECT_FALSE(costs.wake.is_measured);
    EXPECT_TRUE(costs.is_measured());
    EXPECT_FALSE(usual.is_measured());
    EXPECT_EQ(source_of(costs),
              "measured 2026-11-25T21:40:03Z in 30 ms, load 0.5, without all that passes between "
              "cores");
    EXPECT_EQ(source_of(usual), "defaults, nothing was measured");
}

TEST(MachineCosts, AreTheSameWhereverTheirTextIsRead) {
    const MachineCosts costs = MachineCosts::parse(kSome).value();
    EXPECT_EQ(MachineCosts::parse(costs.text()).value(), costs);
    EXPECT_EQ(MachineCosts().text(), "");
    EXPECT_EQ(MachineCosts::parse("").value(), MachineCosts());
}

TEST(MachineCosts, CanBeReadWhateverWasMeasured) {
    for (const double odd : {0.0, 1e-30, 1e30, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
        MachineCosts costs;
        costs.core_round_trip = {.seconds = odd, .is_measured = true};
        costs.copy = {costs.core_round_trip, costs.core_round_trip, costs.core_round_trip,
                      costs.core_round_trip};
        costs.origin = {.cores = 1 << 30, .load = odd, .tries = 1'000'000, .spread = odd};
        EXPECT_TRUE(MachineCosts::parse(costs.text()).is_ok()) << costs.text();
    }
}

TEST(MachineCosts, EachLineNamesItsSource) {
    const std::vector<std::string> lines = lines_of(MachineCosts::parse(kSome).value());
    EXPECT_EQ(lines.size(), named_figures().size() + named_byte_figures().size() + 1);
    EXPECT_THAT(lines[0], AllOf(HasSubstr("beat"), HasSubstr("0.25 us, measured")));
    EXPECT_THAT(lines[1], HasSubstr("default"));
    EXPECT_THAT(lines.back(), HasSubstr("caches: 32768 1048576 33554432 bytes"));
}

TEST(MachineCosts, NameTheReasonWhereNothingPassesBetweenCores) {
    const auto source = [](const std::string& text) {
        return source_of(MachineCosts::parse("date 2026-11-25\nquiet 1\n" + text).value());
    };
    const std::string between = "wake 2\ntcp_round 3\ntcp_message 4\ntcp_byte 5\n";
    EXPECT_EQ(source("cores 2\nbeat 1\n" + between), "measured 2026-11-25, load 0");
    EXPECT_THAT(source("cores 2\ncopy 1 1 1 1\n"), HasSubstr("while no other core was free"));
    EXPECT_THAT(source("cores 1\ncopy 1 1 1 1\n"), HasSubstr("on its only core"));
    EXPECT_THAT(source("cores 2\nbeat 1\nwake 1\n"), HasSubstr("without all that passes"));
}

TEST(MachineCosts, NameTheWrongLine) {
    const auto refused = [](const std::string& text) {
        return MachineCosts::parse("beat 1\n" + text).status();
    };
    for (const char* line : {"beat",           "beat fast",    "beat 0",
                             "beat -1",        "beat nan",     "beat inf",
                             "beat 1 2",       "beat 1e9",     "copy 1 2 3",
                             "copy 1 2 3 4 5", "copy 1 2 3 x", "caches 1 2",
                             "caches 3 2 1",   "caches 0 1 2", "caches 1 2 99999999999999999999",
                             "took -1",        "load -1",      "tries x",
                             "tries 9999",     "date",         "melody 3",
                             "date a b",       "cores -1"}) {
        EXPECT_EQ(refused(line).code(), StatusCode::kInvalidArgument) << line;
        EXPECT_THAT(refused(line).message(), HasSubstr("line 2")) << line;
    }
    EXPECT_EQ(refused("date " + std::string(200, 'x')).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(refused(std::string(MachineCosts::kMostBytes, '#')).code(),
              StatusCode::kInvalidArgument);
}

TEST(MachineCosts, WhatFitsIntoACacheIsOfItsLevel) {
    const MachineCosts costs = MachineCosts::parse(kSome).value();
    EXPECT_EQ(costs.level_of(0), Level::kFirst);
    EXPECT_EQ(costs.level_of(32768), Level::kFirst);
    EXPECT_EQ(costs.level_of(32769), Level::kSecond);
    EXPECT_EQ(costs.level_of(33554432 / 2), Level::kLast);  // half of it: others use it, too
    EXPECT_EQ(costs.level_of(33554432 / 2 + 1), Level::kMemory);
}

TEST(MachineCosts, FillUpWhatTheyLack) {
    MachineCosts costs = MachineCosts::parse("beat 2\nwake 3\n").value();
    costs.fill_up_from(MachineCosts::parse("beat 1\nwake 4\ndirect_start 9\n").value());
    EXPECT_DOUBLE_EQ(costs.core_round_trip.seconds, 2e-6);
    EXPECT_DOUBLE_EQ(costs.wake.seconds, 3e-6);
    EXPECT_DOUBLE_EQ(costs.direct_start.seconds, 9e-6);
    EXPECT_FALSE(costs.tcp_round.is_measured);
}

}  // namespace
}  // namespace pccl::costs
