// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/topo/nccl_table.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <regex>
#include <sstream>

#include <pccl/deadline.h>
#include "tests/cpp/topo/machines.h"

namespace pccl::topo {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    return parts;
}

/// "-n 2 -sm 80 -nop2p": a flag's number, or 1 where it has none.
std::map<std::string, int> flags_of(const std::string& text) {
    std::map<std::string, int> flags;
    std::string last;
    for (const std::string& word : split(text, ' ')) {
        if (word.front() == '-')
            flags[last = word] = 1;
        else
            flags[last] = std::stoi(word);
    }
    return flags;
}

std::optional<int> optional_flag(const std::map<std::string, int>& flags, const char* name) {
    const auto found = flags.find(name);
    return found == flags.end() ? std::nullopt : std::optional(found->second);
}

Pattern pattern_of(const std::string& number) {
    if (number == "4") return Pattern::kRing;
    return number == "5" ? Pattern::kHeads : Pattern::kTree;
}

NcclRow row_of(const std::vector<std::string>& columns, const std::smatch& match) {
    const std::map<std::string, int> flags = flags_of(columns[2]);
    const std::vector<std::string> times = split(columns[6], '/');
    NcclRow row{.name = columns[0], .file = "nccl/" + columns[1]};
    row.load.assume = {.sm = optional_flag(flags, "-sm"),
                       .nvlinks = optional_flag(flags, "-nvl"),
                       .net_speed = optional_flag(flags, "-netspeed"),
                       .peer_to_peer = flags.count("-nop2p") == 0,
                       .multi_node_nvlink = flags.count("-mnnvl") > 0};
    row.search.pattern = pattern_of(match[1]);
    row.search.nodes = flags.at("-n");
    row.bandwidth = std::stod(match[2]) * std::min(std::stod(match[3]), std::stod(match[4]));
    row.type_intra = *path_type_named(match[5].str());
    row.type_inter = *path_type_named(match[6].str());
    row.path_seconds = std::stod(times[0]) / 1e3;
    if (row.search.pattern == Pattern::kRing) row.seconds = std::stod(times[1]) / 1e3;
    if (row.search.pattern == Pattern::kTree) row.seconds = std::stod(times[2]) / 1e3;
    return row;
}

double seconds_since(TimePoint start) {
    return std::chrono::duration<double>(system_clock().now() - start).count();
}

}  // namespace

std::vector<NcclRow> nccl_rows() {
    static const std::regex graph(
        "Pattern (\\d), crossNic \\d, nChannels (\\d+), bw ([\\d.]+)/([\\d.]+), "
        "type (\\w+)/(\\w+)");
    std::vector<NcclRow> rows;
    const std::vector<std::string> lines = split(read_data("nccl_search.tsv"), '\n');
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const std::vector<std::string> columns = split(lines[i], '\t');
        for (auto match = std::sregex_iterator(columns[5].begin(), columns[5].end(), graph);
             match != std::sregex_iterator(); ++match)
            rows.push_back(row_of(columns, *match));
    }
    return rows;
}

OwnResult own_result(const NcclRow& row) {
    constexpr int kRuns = 5;
    OwnResult best;
    const Topology loaded = load(row.file, row.load);
    for (int run = 0; run < kRuns; ++run) {
        const TimePoint start = system_clock().now();
        const Topology topology = *Topology::make(loaded.machine(), row.load);
        const double path_seconds = seconds_since(start);
        auto plan = search(topology, row.search);
        EXPECT_TRUE(plan.is_ok()) << row.name << ": " << plan.status().to_string();
        if (!plan.is_ok()) return best;
        if (run == 0 || plan->seconds < best.plan.seconds) best.plan = *plan;
        if (run == 0 || path_seconds < best.path_seconds) best.path_seconds = path_seconds;
    }
    return best;
}

}  // namespace pccl::topo
