// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cgroup.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostMounts = 256 * kKiB;
constexpr double kMostMicroseconds = 1e15;
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;

std::string text_of(const std::string& path, std::size_t limit = kMostText) {
    const auto text = read_start(path, limit);
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

/// Returns the number behind `name` in lines of names and numbers; 0 where there is none.
std::uint64_t entry_in(std::string_view lines, std::string_view name) {
    while (!lines.empty()) {
        std::string_view words = next_line(lines);
        if (next_word(words) == name)
            return number_in(next_word(words), std::uint64_t{0}, kMostCount).value_or(0);
    }
    return 0;
}

bool lists_cpu(std::string_view controllers) {
    return concat(",", controllers, ",").find(",cpu,") != std::string::npos;
}

/// Place where a hierarchy is mounted, and the group that appears there.
struct GroupMount {
    std::string folder;
    std::string group;
};

/// Reads a line of mountinfo: "33 31 0:29 /group /folder rw - cgroup cgroup rw,cpu". Returns
/// nothing for other mounts than a hierarchy of version 2, or that of the CPU controller.
std::optional<GroupMount> mount_in(std::string_view line, bool is_v2) {
    const std::size_t end = line.find(" - ");
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view after = line.substr(end + 3);
    const std::string_view type = next_word(after);
    next_word(after);
    const std::string_view options = next_word(after);
    if (type != (is_v2 ? "cgroup2" : "cgroup") || (!is_v2 && !lists_cpu(options)))
        return std::nullopt;
    for (int skipped = 0; skipped < 3; ++skipped) next_word(line);
    const std::string_view group = next_word(line);
    return GroupMount{std::string(next_word(line)), std::string(group)};
}

/// Returns the first mount of the hierarchy; the usual place where the kernel lists none.
GroupMount find_mount(const std::string& root, bool is_v2) {
    const std::string mounts = text_of(root + "/proc/self/mountinfo", kMostMounts);
    for (std::string_view rest = mounts; !rest.empty();)
        if (auto mount = mount_in(next_line(rest), is_v2)) return *std::move(mount);
    return {is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", "/"};
}

/// Returns the path of a group below its mount, "" for the mount itself. Groups that are not
/// visible there (a mount of another group, "/../pod" in a namespace) count as the mount.
std::string_view below_mount(std::string_view group, std::string_view mounted) {
    if (mounted == "/") mounted = "";
    const bool is_inside = group.starts_with(mounted) &&
                           (group.size() == mounted.size() || group[mounted.size()] == '/');
    if (!is_inside || group.find("/..") != std::string_view::npos) return "";
    group.remove_prefix(mounted.size());
    return group == "/" ? "" : group;
}

/// Adds the folders of a group and of those above it, up to the mount.
void add_folders(std::vector<std::string>& folders, const std::string& root,
                 const GroupMount& mount, std::string_view group) {
    for (std::string_view below = below_mount(group, mount.group); !below.empty();
         below = below.substr(0, below.rfind('/')))
        folders.push_back(concat(root, mount.folder, below));
    folders.push_back(root + mount.folder);
}

}  // namespace

CpuGroups CpuGroups::of_process(const std::string& root) {
    CpuGroups found;
    const std::string groups = text_of(root + "/proc/self/cgroup");
    // Lines of hierarchy:controllers:group; the controllers of v2 are empty.
    for (std::string_view rest = groups; !rest.empty();) {
        const std::string_view line = next_line(rest);
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos) continue;
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const bool is_v2 = controllers.empty();
        if (is_v2 || lists_cpu(controllers))
            add_folders(found.folders_, root, find_mount(root, is_v2), line.substr(second + 1));
    }
    return found;
}

double CpuGroups::quota() const {
    double least = kNoQuota;
    for (const std::string& folder : folders_)
        least = std::min({least, quota_of_v2(folder), quota_of_v1(folder)});
    return least;
}

std::uint64_t CpuGroups::throttled() const {
    std::uint64_t sum = 0;
    for (const std::string& folder : folders_) {
        sum += entry_in(text_of(folder + "/cpu.stat"), "nr_throttled");
        // These contain the effect of groups above that are not visible.
        const std::string local = text_of(folder + "/cpu.stat.local");
        sum += entry_in(local, "throttled_usec") + entry_in(local, "throttled_time");
    }
    return sum;
}

double cpu_quota(const std::string& root) { return CpuGroups::of_process(root).quota(); }

}  // namespace pccl::sys
