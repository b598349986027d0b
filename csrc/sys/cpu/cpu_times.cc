// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/cpu_times.h"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {
namespace {

constexpr int kMostThreads = 1024;
constexpr std::size_t kLongestLine = 96;

/// Parses a line of the kernel's schedstat: nanoseconds on a core, nanoseconds on a run queue, and
/// a number of time slices.
CpuTimes parse_schedstat(std::string_view line) {
    std::uint64_t ran = 0;
    std::uint64_t queued = 0;
    const char* const end = line.data() + line.size();
    const auto [next, failed] = std::from_chars(line.data(), end, ran);
    if (failed != std::errc() || next == end) return {};
    if (std::from_chars(next + 1, end, queued).ec != std::errc()) return {};
    return {.ran = std::chrono::nanoseconds(ran), .queued = std::chrono::nanoseconds(queued)};
}

}  // namespace

CpuTimes cpu_times() {
    CpuTimes sum;
    int threads = 0;
    std::error_code failed;
    for (std::filesystem::directory_iterator at("/proc/self/task", failed), end;
         !failed && at != end && threads < kMostThreads; at.increment(failed), ++threads) {
        // A thread may have ended meanwhile.
        const auto line = read_start((at->path() / "schedstat").string(), kLongestLine);
        if (!line.is_ok()) continue;
        const CpuTimes times = parse_schedstat(*line);
        sum.ran += times.ran;
        sum.queued += times.queued;
    }
    return sum;
}

}  // namespace pccl::sys
