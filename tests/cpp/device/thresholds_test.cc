// SPDX-License-Identifier: Apache-2.0

// Thresholds as a table launch what the numbers in code launched before them.
#include "csrc/kernels/thresholds.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "csrc/device/launch/lowering.h"
#include "tests/fakes/places.h"

namespace pccl::device {
namespace {

using kernels::LaunchPlan;

/// "words/64/128", as the table has it.
std::string text_of(const LaunchPlan& plan) {
    constexpr std::array kNames{"words", "direct", "turns", "engines"};
    return std::string(kNames.at(static_cast<std::size_t>(plan.protocol))) + "/" +
           std::to_string(plan.blocks) + "/" + std::to_string(plan.threads);
}

/// The rows of tests/data/device_plans.txt: GPUs, bytes, a plan for each collective of the heading.
struct Row {
    int gpus = 0;
    std::size_t bytes = 0;
    std::vector<std::string> plans{};
};

struct Table {
    std::vector<schedule::CollectiveKind> kinds{};
    std::vector<Row> rows{};
};

Table golden() {
    std::ifstream file(fakes::in_tests("data/device_plans.txt"));
    Table table;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        Row row;
        if (line.starts_with("# gpus bytes ")) {
            for (words >> word >> word >> word; words >> word;)
                table.kinds.push_back(schedule::collective_named(word).value());
        } else if (!line.starts_with('#') && words >> row.gpus >> row.bytes) {
            while (words >> word) row.plans.push_back(word);
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

TEST(ThresholdsTest, LaunchWhatWasLaunchedBeforeTheyWereATable) {
    const Table table = golden();
    ASSERT_EQ(table.kinds.size(), 8U);
    ASSERT_GT(table.rows.size(), 400U);
    for (const Row& row : table.rows) {
        ASSERT_EQ(row.plans.size(), table.kinds.size());
        for (std::size_t i = 0; i < table.kinds.size(); ++i)
            EXPECT_EQ(text_of(plan_collective(table.kinds[i], row.bytes, row.gpus)), row.plans[i])
                << schedule::to_string(table.kinds[i]) << " of " << row.bytes << " bytes on "
                << row.gpus << " GPUs";
    }
}

TEST(ThresholdsTest, OfAnArchitectureThatNobodyMeasuredAreTheNearestOlderOnes) {
    for (const kernels::Thresholds& measured : kernels::measured_thresholds()) {
        EXPECT_EQ(&kernels::thresholds_of(measured.architecture), &measured);
        EXPECT_FALSE(measured.measured_on.empty());
    }
    const auto all = kernels::measured_thresholds();
    EXPECT_EQ(&kernels::thresholds_of(all.front().architecture - 1), &all.front());
    EXPECT_EQ(&kernels::thresholds_of(all.back().architecture + 30), &all.back());
}

TEST(ThresholdsTest, EveryPlanHasAReason) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20, std::size_t{1} << 30})
        for (const auto kind : golden().kinds)
            EXPECT_STRNE(plan_collective(kind, bytes, 4).why, "");
}

}  // namespace
}  // namespace pccl::device
