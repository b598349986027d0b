// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/calibration.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace pccl::topo {
namespace {

using ::testing::HasSubstr;

TEST(CalibrationTest, TheSlowestOfWhatFitsCounts) {
    const auto found = Calibration::parse(
        "# a comment\n\nmemory 0 0 0.5 12\nmemory 0 1 0.9 7\nsockets 0 0 20 2\nreduce 10.5\n");
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    EXPECT_EQ(found->between(MeasuredLink::kMemory, 0, 0)->bandwidth, 12);
    EXPECT_EQ(found->between(MeasuredLink::kMemory, 1, 0)->bandwidth, 7);
    EXPECT_NEAR(found->between(MeasuredLink::kMemory, -1, -1)->latency, 0.9e-6, 1e-15);
    EXPECT_FALSE(found->between(MeasuredLink::kMemory, 1, 1).has_value());
    EXPECT_NEAR(found->between(MeasuredLink::kSockets, -1, 0)->latency, 20e-6, 1e-15);
    EXPECT_EQ(found->reduce(), 10.5);
    EXPECT_FALSE(found->network("eth0", "node7").has_value());
    EXPECT_TRUE(Calibration::parse("")->is_empty());
}

TEST(CalibrationTest, NetworksAreByInterfaceAndHost) {
    const auto found = Calibration::parse("network eth0 node7 25 1.2\nnetwork ib0 node7 2 46\n");
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    EXPECT_FALSE(found->is_empty());
    EXPECT_EQ(found->network("ib0", "node7")->bandwidth, 46);
    EXPECT_NEAR(found->network("eth0", "node7")->latency, 25e-6, 1e-15);
    EXPECT_FALSE(found->network("eth0", "node8").has_value());
}

TEST(CalibrationTest, CopiesBetweenGpusAreByBusIdsAndDirection) {
    const auto found = Calibration::parse("gpus 0000:0d:00.0 0000:0e:00.0 9 378\n");
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    EXPECT_EQ(found->gpus("0000:0d:00.0", "0000:0e:00.0")->bandwidth, 378);
    EXPECT_FALSE(found->gpus("0000:0e:00.0", "0000:0d:00.0").has_value());
    EXPECT_THAT(Calibration::parse("gpus 0000:0d:00.0 9 378").status().message(),
                HasSubstr("two bus ids, microseconds and GB/s"));
}

TEST(CalibrationTest, NamesTheLineThatCannotBeUsed) {
    const auto refusal = [](const char* text) {
        return Calibration::parse(text).status().message();
    };
    EXPECT_THAT(refusal("memory 0 0 1 1\nnvlink 0 1 2 3"),
                HasSubstr("line 2: no memory, sockets, network, gpus or reduce: nvlink"));
    for (const char* bad : {"memory 0 0 1", "memory 0 0 1 0", "memory 0 0 -1 1", "memory 0 -1 1 1",
                            "memory 0 0 1 1 1", "memory 0 0 nan 1", "memory 0 0 1 inf"})
        EXPECT_THAT(refusal(bad), HasSubstr("two NUMA nodes, microseconds and GB/s")) << bad;
    for (const char* bad : {"network eth0 node7 1", "network eth0 1 2", "network eth0 a 1 0"})
        EXPECT_THAT(refusal(bad), HasSubstr("an interface, a host, microseconds and GB/s")) << bad;
    EXPECT_THAT(refusal("reduce"), HasSubstr("after reduce must come GB/s"));
    EXPECT_FALSE(Calibration::parse(std::string(Calibration::kMostBytes + 1, '#')).is_ok());
}

TEST(CalibrationTest, IsKeptByTheDigestOfTheMachine) {
    Config config;
    EXPECT_EQ(calibration_path("abc", config), "");
    config.cache_folder = ::testing::TempDir() + "/pccl_calibration";
    std::filesystem::remove_all(config.cache_folder);
    EXPECT_FALSE(has_calibrations(config));
    std::filesystem::create_directories(config.cache_folder + "/pccl");
    std::ofstream(calibration_path("abc", config)) << "reduce 3\n";
    EXPECT_TRUE(has_calibrations(config));
    EXPECT_EQ(load_calibration("abc", config).reduce(), 3);
    EXPECT_TRUE(load_calibration("def", config).is_empty());
    std::ofstream(calibration_path("abc", config)) << "nonsense\n";
    EXPECT_TRUE(load_calibration("abc", config).is_empty()) << "with a warning in the log";
    std::filesystem::remove_all(config.cache_folder);
}

}  // namespace
}  // namespace pccl::topo
