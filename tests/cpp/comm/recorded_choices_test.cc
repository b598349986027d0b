// SPDX-License-Identifier: Apache-2.0

// What the cost model says of a machine whose figures were recorded, beside what every algorithm
// took there (benchmarks/choices.py): predictions and choices, without the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/comm/selection/selector.h"
#include "tests/fakes/places.h"

namespace pccl::comm {
namespace {

using nlohmann::json;

struct Record {
    const char* file;
    // Of the processor, where the record does not say.
    const char* caches = "";
};
constexpr Record kXeon{"2026-11-26-choices_shm-32core-xeon.json", "49152 2097152 272629760"};
constexpr Record kSlowerXeon{"2026-11-28-choices_shm-32core-xeon.json"};
constexpr Record kAllReduces{"2026-11-28-choices_all_reduce-32core-xeon.json"};
constexpr Record kSockets{"2026-11-28-choices_tcp-16core-xeon.json"};
constexpr Record kManySockets{"2026-11-28-choices_tcp_16_and_32_ranks-32core-xeon.json"};
constexpr Record kManySocketsApart{"2026-11-28-choices_tcp_apart-32core-xeon.json"};
constexpr Record kMostSockets{"2026-11-28-choices_tcp_64_ranks-64core-xeon.json"};
constexpr Record kEpyc{"2026-11-27-choices-2core-epyc.json", "32768 1048576 33554432"};

json read(const Record& record) {
    std::ifstream file(fakes::in_tests("data/choices/") + record.file);
    if (!file)
        throw std::runtime_error(concat("no record ", record.file, " in tests/data/choices"));
    return json::parse(file);
}

/// "copy: first 0.0091 ns, measured; second ..." as "copy 0.0091 ...", what parse() takes.
std::string figure_of(const std::string& line) {
    const std::string caches = "caches: ";
    if (line.starts_with(caches))
        return concat("caches ", line.substr(caches.size(), line.find(" bytes") - caches.size()));
    std::string text = line.substr(0, line.find(':'));
    for (std::size_t unit = line.find("s, measured"); unit != std::string::npos;
         unit = line.find("s, measured", unit + 1)) {
        const std::size_t end = line.rfind(' ', unit);
        const std::size_t begin = line.rfind(' ', end - 1) + 1;
        text += " " + line.substr(begin, end - begin);
    }
    return text;
}

costs::MachineCosts costs_of(const json& machine, const std::string& caches) {
    std::string text;
    if (!caches.empty()) text = concat("caches ", caches, "\n");
    for (const std::string line : machine["figures"])
        if (line.find("measured") != std::string::npos || line.starts_with("caches"))
            text += figure_of(line) + "\n";
    const auto costs = costs::MachineCosts::parse(text);
    EXPECT_TRUE(costs.is_ok()) << costs.status().to_string();
    return *costs;
}

/// As they are on a machine with so many cores.
struct RecordedPlace {
    int ranks = 1;
    bool share_memory = false;
    int cores = 1;
};

costs::ShmShape segment_of(const RecordedPlace& place, int ranks_on_core) {
    const std::size_t buffer_bytes = kMiB + 7 * kKiB;  // as between two ranks
    const auto parts = static_cast<std::size_t>(place.ranks);
    return {.ranks = place.ranks,
            .buffer_bytes = buffer_bytes,
            .part_bytes = buffer_bytes / parts / kCacheLine * kCacheLine,
            .reads_directly = true,
            .ranks_on_core = ranks_on_core};
}

Selector selector_at(const RecordedPlace& place, const costs::MachineCosts& costs) {
    const int ranks_on_core = (place.ranks + place.cores - 1) / place.cores;
    costs::Predictor::Setting setting{
        .reach = {.ranks = place.ranks,
                  .is_on_one_host = place.share_memory,
                  .shares_memory = place.share_memory,
                  .most_on_a_host = place.share_memory ? place.ranks : 1,
                  .ranks_on_core = ranks_on_core},
        .segment = {},
        .layout = *bootstrap::Layout::make(place.ranks, "")};
    if (place.share_memory) setting.segment = segment_of(place, ranks_on_core);
    return {0, setting, {.costs = costs}};
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

bool is_good(double us, double best_us) { return us <= 1.15 * best_us || us - best_us <= 0.5; }

/// The best and what was chosen then ran once more, by themselves.
bool is_good_choice(const json& cell, const std::string& chosen) {
    if (chosen == cell["best"].get<std::string>()) return true;
    if (chosen == cell["chosen"].get<std::string>())
        return is_good(cell["default_us"], cell["best_us"]);
    double best_us = cell["us"].at(chosen);
    for (const json& us : cell["us"]) best_us = std::min<double>(best_us, us);
    return is_good(cell["us"].at(chosen), best_us);
}

Replay replay(const Record& of) {
    const json record = read(of);
    const json& machine = record["machine"];
    const costs::MachineCosts costs = costs_of(machine, of.caches);
    Replay found;
    for (const json& cell : record["cells"]) {
        const RecordedPlace place{cell["ranks"], cell["transport"] == "shm", machine["cores"]};
        const std::size_t bytes = cell["bytes"];
        const CollectiveKind kind = kind_of(cell["collective"]);
        Selector selector = selector_at(place, costs);
        const auto ways = selector.explain(kind, block_bytes(kind, bytes, place.ranks)).value();
        for (const Prediction& way : ways) {
            const std::string name(way.algorithm());
            // Bruck's of all_to_all could not be chosen when the first record was made.
            if (!cell["us"].contains(name)) continue;
            const double ratio = way.seconds * 1e6 / cell["us"].at(name).get<double>();
            const double error = std::max(ratio, 1 / ratio);
            found.errors.push_back(error);
            if (bytes <= 16 * kKiB) found.small.push_back(error);
            if (way.is_chosen && is_good_choice(cell, name)) ++found.good;
        }
        ++found.cells;
    }
    std::ranges::sort(found.errors);
    std::ranges::sort(found.small);
    return found;
}

/// As they came out when call and further ranks were counted in; before, half of the small ones
/// were off by more than 1.69, and a tenth by more than 2.7.
TEST(RecordedChoicesTest, PredictionsAreAsNearAsTheyWere) {
    const Replay found = replay(kXeon);
    EXPECT_EQ(found.errors.size(), 612U);
    EXPECT_LE(at_part(found.errors, 0.5), 1.24);
    EXPECT_LE(at_part(found.errors, 0.9), 1.71);
    EXPECT_LE(at_part(found.small, 0.5), 1.35);
    EXPECT_LE(at_part(found.small, 0.9), 1.75);
}

/// Its cores and the speed of its memory moved meanwhile: one algorithm took up to twice as long in
/// one run as in another. With a wake-up for each message of ranks that share cores, which a change
/// of a core is, half were off by more than 1.43 and a tenth by more than 2.37; and of the record
/// before this one, whose programs were cut into a window more, half by more than 1.35.
TEST(RecordedChoicesTest, PredictionsAreAsNearAsTheyWereOverTcpAndOnSharedCores) {
    const Replay found = replay(kEpyc);
    EXPECT_EQ(found.errors.size(), 1062U);
    EXPECT_LE(at_part(found.errors, 0.5), 1.37);
    EXPECT_LE(at_part(found.errors, 0.9), 2.2);
}

void expect_good(const Record& of, int good, int cells) {
    const Replay found = replay(of);
    EXPECT_EQ(found.cells, cells) << of.file;
    EXPECT_GE(found.good, good) << of.file;
}

/// In all 371 of 378. Of the slower Xeon 86 were good when direct sums counted as copies from the
/// last cache; its all_reduces of 256 KiB and 1 MiB were chosen with the slots in that cache.
TEST(RecordedChoicesTest, ChoicesAreAsGoodAsTheyWere) {
    expect_good(kXeon, 90, 90);
    expect_good(kSlowerXeon, 88, 90);
    expect_good(kAllReduces, 16, 18);
    expect_good(kEpyc, 177, 180);
}

/// A core each. Back to back, where a root that waits for nobody is a call ahead of the others, and
/// with all ranks rendezvous before each call, where the last one waits for a chain: of 4 ranks a
/// chain has short broadcasts sooner in the one, and a tree in the other.
TEST(RecordedChoicesTest, ChoicesOverSocketsAreAsGoodAsTheyWere) {
    expect_good(kSockets, 88, 90);
    expect_good(kManySockets, 30, 30);
    expect_good(kManySocketsApart, 30, 30);
    expect_good(kMostSockets, 10, 10);
}

}  // namespace
}  // namespace pccl::comm
