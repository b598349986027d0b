// What the cost model says of a machine whose figures were recorded, beside what every algorithm
// took there (benchmarks/choices.py): predictions and choices, without the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/comm/selection/selector.h"

namespace pccl::comm {
namespace {

using nlohmann::json;

json recorded() {
    std::ifstream file(std::string(PCCL_TEST_DATA) +
                       "/../../benchmarks/results/2026-11-26-choices_shm-32core-xeon.json");
    return json::parse(file);
}

/// "copy: first 0.0091 ns, measured; second ..." as "copy 0.0091 ...", what parse() takes.
std::string figure_of(const std::string& line) {
    std::string text = line.substr(0, line.find(':'));
    for (std::size_t unit = line.find("s, measured"); unit != std::string::npos;
         unit = line.find("s, measured", unit + 1)) {
        const std::size_t end = line.rfind(' ', unit);
        const std::size_t begin = line.rfind(' ', end - 1) + 1;
        text += " " + line.substr(begin, end - begin);
    }
    return text;
}

costs::MachineCosts costs_of(const json& machine) {
    // The caches are not in the record: those of the processor.
    std::string text = "caches 49152 2097152 272629760\n";
    for (const json& line : machine["figures"]) text += figure_of(line) + "\n";
    const auto costs = costs::MachineCosts::parse(text);
    EXPECT_TRUE(costs.is_ok()) << costs.status().to_string();
    return *costs;
}

Selector selector_of(int ranks, const costs::MachineCosts& costs) {
    const std::size_t half = kMiB - 8 * kKiB;
    return {0,
            {.reach = {.ranks = ranks,
                       .is_on_one_host = true,
                       .shares_memory = true,
                       .most_on_a_host = ranks},
             .board = BoardShape{.ranks = ranks,
                                 .half_bytes = half,
                                 .part_bytes = half / static_cast<std::size_t>(ranks) / kCacheLine *
                                               kCacheLine,
                                 .reads_directly = true,
                                 .ranks_on_core = 1},
             .layout = *bootstrap::Layout::make(ranks, "")},
            {.costs = costs}};
}

CollectiveKind kind_of(const std::string& name) {
    for (int kind = 0; kind < 8; ++kind)
        if (schedule::to_string(static_cast<CollectiveKind>(kind)) == name)
            return static_cast<CollectiveKind>(kind);
    ADD_FAILURE() << name;
    return CollectiveKind::kAllReduce;
}

struct Replay {
    std::vector<double> errors;  // of all algorithms: the longer time over the shorter; sorted
    std::vector<double> small;   // of those, up to 16 KiB
    int cells = 0;
    int good = 0;  // whose choice takes at most 15 % or 0.5 us more than the best
};

double at_part(const std::vector<double>& sorted, double part) {
    return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

Replay replay() {
    const json record = recorded();
    const costs::MachineCosts costs = costs_of(record["machine"]);
    Replay found;
    for (const json& cell : record["cells"]) {
        const int ranks = cell["ranks"];
        const CollectiveKind kind = kind_of(cell["collective"]);
        const std::size_t bytes = cell["bytes"];
        Selector selector = selector_of(ranks, costs);
        const auto ways = selector.explain(kind, block_bytes(kind, bytes, ranks)).value();
        double chosen = 0;
        double best = 1e99;
        for (const Prediction& way : ways) {
            const double us = cell["us"].at(std::string(way.algorithm()));
            const double ratio = way.seconds * 1e6 / us;
            const double error = std::max(ratio, 1 / ratio);
            found.errors.push_back(error);
            if (bytes <= 16 * kKiB) found.small.push_back(error);
            best = std::min(best, us);
            if (way.is_chosen) chosen = us;
        }
        ++found.cells;
        if (chosen <= 1.15 * best || chosen - best <= 0.5) ++found.good;
    }
    std::ranges::sort(found.errors);
    std::ranges::sort(found.small);
    return found;
}

/// As they came out when call and further ranks were counted in; before, half of the small ones
/// were off by more than 1.69, and a tenth by more than 2.7.
TEST(RecordedChoicesTest, PredictionsAreAsNearAsTheyWere) {
    const Replay found = replay();
    EXPECT_EQ(found.errors.size(), 612U);
    EXPECT_LE(at_part(found.errors, 0.5), 1.26);
    EXPECT_LE(at_part(found.errors, 0.9), 1.75);
    EXPECT_LE(at_part(found.small, 0.5), 1.35);
    EXPECT_LE(at_part(found.small, 0.9), 1.75);
}

TEST(RecordedChoicesTest, ChoicesAreAsGoodAsTheyWere) {
    const Replay found = replay();
    EXPECT_EQ(found.cells, 90);
    EXPECT_GE(found.good, 86);
}

}  // namespace
}  // namespace pccl::comm
