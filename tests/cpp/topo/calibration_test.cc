#include "csrc/topo/calibration.h"

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
    EXPECT_TRUE(Calibration::parse("")->is_empty());
}

TEST(CalibrationTest, NamesTheLineThatCannotBeUsed) {
    const auto refusal = [](const char* text) {
        return Calibration::parse(text).status().message();
    };
    EXPECT_THAT(refusal("memory 0 0 1 1\nnvlink 0 1 2 3"),
                HasSubstr("line 2: no memory, sockets or reduce: nvlink"));
    for (const char* bad : {"memory 0 0 1", "memory 0 0 1 0", "memory 0 0 -1 1", "memory 0 -1 1 1",
                            "memory 0 0 1 1 1", "memory 0 0 nan 1", "memory 0 0 1 inf"})
        EXPECT_THAT(refusal(bad), HasSubstr("two NUMA nodes, microseconds and GB/s")) << bad;
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
