// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/process_start.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {
namespace {

constexpr std::size_t kLongest = 4096;
// Number of the field behind the name, which is in brackets and may contain anything.
constexpr int kStartField = 20;

Result<double> age_in_seconds() {
    PCCL_ASSIGN_OR_RETURN(const std::string stat, read_start("/proc/self/stat", kLongest));
    PCCL_ASSIGN_OR_RETURN(const double start, start_after_boot(stat, ::sysconf(_SC_CLK_TCK)));
    PCCL_ASSIGN_OR_RETURN(const std::string uptime, read_start("/proc/uptime", kLongest));
    return std::strtod(uptime.c_str(), nullptr) - start;
}

}  // namespace

Result<double> start_after_boot(std::string_view stat, long ticks) {
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string_view::npos || ticks <= 0)
        return Status::invalid_argument("no name of a process in brackets");
    std::istringstream fields{std::string(stat.substr(name_end + 1))};
    std::string field;
    for (int i = 0; i < kStartField; ++i)
        if (!(fields >> field)) return Status::invalid_argument("it ends before the start time");
    return std::strtod(field.c_str(), nullptr) / static_cast<double>(ticks);
}

long long process_start_ms() {
    const long long now = wall_clock_ms();
    const Result<double> age = age_in_seconds();
    // Containers may have an uptime of their own.
    if (!age.is_ok() || *age < 0) return now;
    return now - static_cast<long long>(*age * 1e3);
}

}  // namespace pccl::sys
