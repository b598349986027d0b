// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/host.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <fstream>

#include "csrc/base/config.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {

Result<std::string> kernel_identity() {
    constexpr std::size_t kUuid = 36;
    const auto boot = read_start("/proc/sys/kernel/random/boot_id", kUuid);
    if (!boot.is_ok())
        return boot.status().with_message(
            concat(boot.status().message(),
                   "; ranks tell hosts apart by it: let this container read /proc/sys"));
    struct stat network {};
    if (::stat("/proc/self/ns/net", &network) != 0)
        return Status::from_errno(errno, "cannot examine /proc/self/ns/net");
    return concat(*boot, ".", network.st_ino);
}

Result<std::string> host_identity() {
    const std::string& configured = process_config().host_id;
    return configured.empty() ? kernel_identity() : Result<std::string>(configured);
}

std::uint32_t user_identity() { return ::geteuid(); }

std::string host_name() {
    utsname system{};
    return ::uname(&system) == 0 ? system.nodename : "unknown";
}

namespace {

/// Returns "AMD EPYC 9V74 80-Core Processor", or the architecture where the kernel reports no
/// model.
std::string processor_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 1);
    utsname system{};
    return ::uname(&system) == 0 ? system.machine : "unknown";
}

/// Converts to lower case, with one hyphen for every run of characters other than letters and
/// digits.
std::string as_file_name(const std::string& text) {
    std::string name;
    for (const char c : text) {
        const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (plain)
            name += lower;
        else if (!name.empty() && name.back() != '-')
            name += '-';
    }
    return name;
}

}  // namespace

std::string machine_name() {
    return as_file_name(concat(processor_model(), " ", ::sysconf(_SC_NPROCESSORS_ONLN)));
}

namespace {

/// Returns the first word of an entry about a cache of the first core; empty where there is none.
std::string cache_entry(int index, std::string_view name) {
    const auto text =
        read_start(concat("/sys/devices/system/cpu/cpu0/cache/index", index, "/", name), 32);
    if (!text.is_ok()) return {};
    std::string_view line = *text;
    line = next_line(line);
    return std::string(next_word(line));
}

/// Parses "32768K".
std::size_t bytes_in(std::string_view text) {
    if (!text.ends_with('K')) return 0;
    text.remove_suffix(1);
    constexpr std::size_t kMostKilobytes = std::size_t{1} << 30;
    return number_in<std::size_t>(text, 1, kMostKilobytes).value_or(0) * kKiB;
}

}  // namespace

CacheBytes cache_bytes() {
    CacheBytes found{};
    constexpr int kMostCaches = 8;
    for (int index = 0; index < kMostCaches; ++index) {
        if (cache_entry(index, "type") == "Instruction") continue;
        const auto level = number_in<std::size_t>(cache_entry(index, "level"), 1, 4);
        if (!level) continue;
        std::size_t& bytes = found[std::min<std::size_t>(*level, found.size()) - 1];
        bytes = std::max(bytes, bytes_in(cache_entry(index, "size")));
    }
    return found;
}

double load_average() {
    constexpr double kMost = 1e6;
    const auto text = read_start("/proc/loadavg", 16);
    if (!text.is_ok()) return 0;
    std::string_view words = *text;
    return number_in(next_word(words), 0.0, kMost).value_or(0);
}

std::size_t most_descriptors() {
    constexpr std::size_t kUsual = 1024;
    rlimit files{};
    return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : kUsual;
}

CoreSet usable_cores() {
    CoreSet cores;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (std::size_t core = 0; core < std::min<std::size_t>(cores.size(), CPU_SETSIZE); ++core)
        cores[core] = CPU_ISSET(core, &set);
    return cores;
}

CoreSet allowed_cores() {
    const CoreSet bound = usable_cores();
    // The kernel removes the cores that the cpuset forbids.
    if (!run_on(CoreSet().set()).is_ok()) return bound;
    const CoreSet allowed = usable_cores();
    static_cast<void>(run_on(bound));
    return allowed;
}

Status run_on(const CoreSet& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (std::size_t core = 0; core < std::min<std::size_t>(cores.size(), CPU_SETSIZE); ++core)
        if (cores[core]) CPU_SET(core, &set);
    if (::sched_setaffinity(0, sizeof set, &set) == 0) return Status::ok();
    return Status::from_errno(errno, "cannot bind a thread to cores");
}

std::size_t current_core() { return static_cast<std::size_t>(std::max(::sched_getcpu(), 0)); }

}  // namespace pccl::sys
