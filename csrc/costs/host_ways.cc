// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/host_ways.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/costs/kept_costs.h"
#include "csrc/costs/measure_tcp.h"
#include "csrc/sys/private_file.h"

namespace pccl::costs {
namespace {

constexpr Duration kMeasuring = std::chrono::milliseconds(5);
constexpr Duration kForOneHost = std::chrono::milliseconds(25);
constexpr Duration kForEachMore = std::chrono::milliseconds(6);
constexpr Duration kLongest = std::chrono::milliseconds(250);
constexpr long long kDayMs = 24LL * 3600 * 1000;
constexpr std::size_t kMostWays = 256;
constexpr std::size_t kMostFileBytes = kMostWays * 2 * topo::HostWay::kMostBytes;
// Above this ratio to loopback the network limits the throughput, because no endpoint is that much
// slower than on loopback.
constexpr double kNarrowTimes = 8;

/// A line of the file: both hosts, and the path between them.
struct KeptWay {
    std::string from;
    std::string to;
    topo::HostWay way;
};

/// Returns the valid lines. Malformed lines, old ones, and lines with a future date (the clock was
/// set back) are skipped.
std::vector<KeptWay> kept_in(const std::string& path) {
    std::vector<KeptWay> kept;
    const Result<std::string> file = sys::read_private(path, kMostFileBytes);
    if (!file.is_ok()) return kept;
    const std::string latest = now_in_utc();
    const std::string oldest = in_utc(wall_clock_ms() - kDayMs);
    for (std::string_view text = *file; !text.empty();) {
        std::string_view line = next_line(text);
        const std::string_view from = next_word(line);
        const std::string_view to = next_word(line);
        auto way = topo::HostWay::parse(line);
        if (way.is_ok() && way->date >= oldest && way->date <= latest)
            kept.push_back({std::string(from), std::string(to), *std::move(way)});
    }
    return kept;
}

/// Replaces the entry of the same two hosts.
void keep_way(const std::string& path, KeptWay found) {
    std::vector<KeptWay> ways = kept_in(path);
    std::erase_if(ways, [&found](const KeptWay& each) {
        return each.from == found.from && each.to == found.to;
    });
    ways.push_back(std::move(found));
    const std::size_t first = ways.size() - std::min(ways.size(), kMostWays);
    std::string text;
    for (std::size_t i = first; i < ways.size(); ++i)
        text += concat(ways[i].from, " ", ways[i].to, " ", ways[i].way.text(), "\n");
    const Status kept = sys::write_cached(path, text);
    if (!kept.is_ok()) log(LogLevel::kInfo, "a way between hosts is not kept: ", kept.message());
}

struct TimedWay {
    topo::HostWay way;
    bool is_steady = false;
};

Result<TimedWay> timed_now(const SoughtWay& sought) {
    const Duration timeout =
        std::min(kForOneHost + std::max(sought.hosts - 2, 0) * kForEachMore, kLongest);
    const Deadline deadline = Deadline::after(timeout);
    PCCL_ASSIGN_OR_RETURN(const UniqueFd connection, sought.connect(deadline));
    PCCL_ASSIGN_OR_RETURN(
        const TcpCosts found,
        measure_connection(connection.get(), {.budget = kMeasuring, .deadline = deadline}));
    if (!found.byte.is_measured) return Status::unavailable("its bytes take no time");
    const bool is_narrow = found.byte.seconds > kNarrowTimes * sought.loopback_byte;
    return TimedWay{{.to = sought.name,
                     .date = now_in_utc(),
                     .round = found.round.seconds,
                     .message = found.message.seconds,
                     .byte = found.byte.seconds,
                     .is_narrow = is_narrow && found.is_steady},
                    found.is_steady};
}

}  // namespace

std::string ways_path(const Config& config) {
    if (config.cache_folder.empty()) return {};
    return sys::cached_file(config.cache_folder, "ways-1");
}

std::optional<topo::HostWay> way_between(const SoughtWay& sought, const Config& config) {
    if (are_off(config)) return std::nullopt;
    const std::string path = ways_path(config);
    for (KeptWay& kept : kept_in(path))
        if (kept.from == sought.from && kept.to == sought.to) return std::move(kept.way);
    auto found = timed_now(sought);
    if (!found.is_ok()) {
        log(LogLevel::kInfo, "the way to ", sought.name,
            " is not timed, and counts as loopback: ", found.status().message());
        return std::nullopt;
    }
    if (found->is_steady && !path.empty()) keep_way(path, {sought.from, sought.to, found->way});
    return std::move(found->way);
}

}  // namespace pccl::costs
