// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/memory_left.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {
namespace {

constexpr std::size_t kLongestTable = 64 * kKiB;

/// File names of one version of control groups.
struct GroupFiles {
    std::string_view mount;
    std::string_view limit;
    std::string_view usage;
    std::string_view inactive;  // entry of memory.stat: file pages, which the kernel reclaims first
    std::string_view active;
};
constexpr GroupFiles kVersion1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                               "memory.usage_in_bytes", "total_inactive_file", "total_active_file"};
constexpr GroupFiles kVersion2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file",
                               "active_file"};

std::optional<std::uint64_t> number_in(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return std::nullopt;
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(text.data() + begin, text.data() + text.size(), number);
    return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// Returns the number behind `name` at the begin of a line.
std::optional<std::uint64_t> entry_of(std::string_view table, std::string_view name) {
    for (std::size_t at = 0; at < table.size();) {
        const std::size_t end = std::min(table.find('\n', at), table.size());
        const std::string_view line = table.substr(at, end - at);
        if (line.starts_with(name)) {
            const std::string_view rest = line.substr(name.size());
            if (rest.starts_with(':') || rest.starts_with(' ')) return number_in(rest.substr(1));
        }
        at = end + 1;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> number_of_file(const std::string& path) {
    const auto text = read_file(path, kKiB);
    return text.is_ok() ? number_in(*text) : std::nullopt;  // "max": none
}

std::uint64_t difference(std::uint64_t all, std::uint64_t used) {
    return all > used ? all - used : 0;
}

void bound_by(MemoryLeft& left, std::uint64_t bytes, std::string bound) {
    if (bytes < left.bytes) left = {bytes, std::move(bound)};
}

void bound_by_promises(MemoryLeft& left, std::string_view meminfo, const std::string& root) {
    if (number_of_file(root + "/proc/sys/vm/overcommit_memory") != 2) return;
    const auto limit = entry_of(meminfo, "CommitLimit");
    const auto promised = entry_of(meminfo, "Committed_AS");
    if (limit && promised)
        bound_by(left, difference(*limit, *promised) * kKiB,
                 "CommitLimit of /proc/meminfo, as vm.overcommit_memory is 2");
}

void bound_by_group(MemoryLeft& left, const GroupFiles& files, const std::string& folder,
                    std::uint64_t swap) {
    const auto limit = number_of_file(concat(folder, "/", files.limit));
    const auto usage = number_of_file(concat(folder, "/", files.usage));
    if (!limit || !usage) return;
    const auto table = read_file(folder + "/memory.stat", kLongestTable);
    const std::string_view stat = table.is_ok() ? std::string_view(*table) : std::string_view();
    const std::uint64_t spare =
        entry_of(stat, files.inactive).value_or(0) + entry_of(stat, files.active).value_or(0);
    bound_by(left, difference(*limit, *usage) + spare + swap,
             concat("the limit of ", folder, "/", files.limit));
}

/// Applies the limits of this process's group and all groups around it. In a container, its own
/// group's folder may be invisible: then the visible folders count.
void bound_by_groups(MemoryLeft& left, const GroupFiles& files, std::string group,
                     const std::string& root, std::uint64_t swap) {
    while (true) {
        if (group == "/") group.clear();
        bound_by_group(left, files, concat(root, files.mount, group), swap);
        if (group.empty()) return;
        group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
}

/// Returns the part behind the second colon of the controller's line; "" means version 2.
std::optional<std::string> group_of(std::string_view groups, std::string_view controller) {
    for (std::size_t at = 0; at < groups.size();) {
        const std::size_t end = std::min(groups.find('\n', at), groups.size());
        const std::string_view line = groups.substr(at, end - at);
        at = end + 1;
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const std::string controllers =
            concat(",", line.substr(first + 1, second - first - 1), ",");
        if (controllers.find(concat(",", controller, ",")) != std::string::npos)
            return std::string(line.substr(second + 1));
    }
    return std::nullopt;
}

}  // namespace

Result<MemoryLeft> memory_left(const std::string& root) {
    PCCL_ASSIGN_OR_RETURN(const std::string meminfo,
                          read_file(root + "/proc/meminfo", kLongestTable));
    const auto available = entry_of(meminfo, "MemAvailable");
    if (!available) return Status::unavailable("/proc/meminfo has no MemAvailable");
    const std::uint64_t swap = entry_of(meminfo, "SwapFree").value_or(0) * kKiB;
    MemoryLeft left{*available * kKiB + swap, "MemAvailable and SwapFree of /proc/meminfo"};
    bound_by_promises(left, meminfo, root);
    const auto groups = read_file(root + "/proc/self/cgroup", kLongestTable);
    if (!groups.is_ok()) return left;
    if (auto group = group_of(*groups, "memory"))
        bound_by_groups(left, kVersion1, std::move(*group), root, swap);
    if (auto group = group_of(*groups, ""))
        bound_by_groups(left, kVersion2, std::move(*group), root, swap);
    return left;
}

}  // namespace pccl::sys
