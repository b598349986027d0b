// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cgroup.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostText = 4096;
constexpr double kMostMicroseconds = 1e15;

std::string text_of(const std::string& path) {
    const auto text = read_start(path, kMostText);
    return text.is_ok() ? *text : std::string();
}

/// Returns the quota of `time` microseconds in each period; none for "max" and -1.
double cores_of(std::string_view time, std::string_view period) {
    const auto used = number_in(time, 1.0, kMostMicroseconds);
    const auto length = number_in(period, 1.0, kMostMicroseconds);
    return used && length ? *used / *length : kNoQuota;
}

/// Reads "200000 100000", or "max 100000".
double quota_of_v2(const std::string& folder) {
    const std::string text = text_of(folder + "/cpu.max");
    std::string_view lines = text;
    std::string_view words = next_line(lines);
    const std::string_view time = next_word(words);
    return cores_of(time, next_word(words));
}

double quota_of_v1(const std::string& folder) {
    const auto word_of = [&](std::string_view name) {
        const std::string text = text_of(concat(folder, "/", name));
        std::string_view lines = text;
        return std::string(next_line(lines));
    };
    return cores_of(word_of("cpu.cfs_quota_us"), word_of("cpu.cfs_period_us"));
}

/// Returns the least quota of a cgroup and those above it.
template <typename QuotaOf>
double least_quota(const std::string& mount, std::string_view group, const QuotaOf& quota_of) {
    double least = quota_of(mount);
    for (std::size_t end = group.size(); end > 1 && end != std::string_view::npos;) {
        least = std::min(least, quota_of(concat(mount, group.substr(0, end))));
        end = group.rfind('/', end - 1);
    }
    return least;
}

bool lists_cpu(std::string_view controllers) {
    return concat(",", controllers, ",").find(",cpu,") != std::string::npos;
}

}  // namespace

double cpu_quota(const std::string& root) {
    const std::string groups = text_of(root + "/proc/self/cgroup");
    double least = kNoQuota;
    // Lines of hierarchy:controllers:group; the controllers of v2 are empty.
    for (std::string_view rest = groups; !rest.empty();) {
        const std::string_view line = next_line(rest);
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos) continue;
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const std::string_view group = line.substr(second + 1);
        if (controllers.empty())
            least = std::min(least, least_quota(root + "/sys/fs/cgroup", group, quota_of_v2));
        else if (lists_cpu(controllers))
            least = std::min(least, least_quota(root + "/sys/fs/cgroup/cpu", group, quota_of_v1));
    }
    return least;
}

}  // namespace pccl::sys
