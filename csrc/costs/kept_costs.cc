// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/kept_costs.h"

#include <algorithm>
#include <tuple>

#include "csrc/base/clock.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/costs/measure.h"
#include "csrc/sys/host.h"
#include "csrc/sys/private_file.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::costs {
namespace {

constexpr std::string_view kOff = "off";

std::string boot_id() {
    constexpr std::size_t kUuid = 36;
    const auto id = sys::read_start("/proc/sys/kernel/random/boot_id", kUuid);
    return id.is_ok() ? *id : std::string();
}

/// Reads the file; kUnavailable if there is none.
Result<MachineCosts> read_costs(const std::string& path) {
    PCCL_ASSIGN_OR_RETURN(const std::string text,
                          sys::read_private(path, MachineCosts::kMostBytes + 1));
    return MachineCosts::parse(text);
}

/// Returns whether the file may be replaced by a new measurement. Logs a warning if it is invalid.
bool may_replace(const Keeping& keeping, const Status& found) {
    if (found.is_ok() || found.code() == StatusCode::kUnavailable) return true;
    log(LogLevel::kWarning, keeping.path, " is ignored: ", found.message(),
        keeping.is_in_cache ? "; this machine's costs are measured anew"
                            : "; delete it, or name another file as PCCL_COSTS_FILE");
    return keeping.is_in_cache;
}

bool is_of(const Origin& origin, const Origin& here) {
    return (origin.machine.empty() || origin.machine == here.machine) &&
           (origin.boot.empty() || origin.boot == here.boot);
}

/// Returns whether no other process used the cores meanwhile, and a second core was available if
/// there is one.
bool is_undisturbed(const MachineCosts& costs, const Origin& here) {
    return costs.origin.is_quiet && (here.cores <= 1 || costs.is_of_two_cores());
}

/// Returns whether a disturbed measurement is old enough for another try, because the disturbance
/// may be over. Each try doubles the time.
bool has_aged(const Origin& origin, long long now_ms) {
    constexpr int kMostDoublings = 20;
    constexpr long long kMinute = 60'000;
    const int doublings = std::clamp(origin.tries - kMostTries, 0, kMostDoublings);
    const long long pause = (kMinutesToFourthTry * kMinute) << doublings;
    return !origin.date.empty() && origin.date < in_utc(now_ms - pause);
}

/// Returns whether the costs can be used. Files written by hand, for any boot, stay unchanged.
bool is_good(const MachineCosts& costs, const Keeping& keeping) {
    const Origin& origin = costs.origin;
    const bool is_enough = origin.tries >= kMostTries && keeping.here.load >= origin.load / 2 &&
                           !has_aged(origin, keeping.now_ms);
    return origin.boot.empty() || is_undisturbed(costs, keeping.here) || is_enough;
}

/// Returns the less disturbed measurement as a whole, because its figures belong together.
MachineCosts better_of(const MachineCosts& a, const MachineCosts& b) {
    // On a permanently shared core the steps take about equal times, but the measurement takes
    // long.
    const auto disturbed = [](const MachineCosts& costs) {
        return std::tuple(!costs.is_of_two_cores(), !costs.origin.is_quiet,
                          costs.origin.spread * std::max(costs.origin.took, 1.0));
    };
    const bool is_a = disturbed(a) <= disturbed(b);
    MachineCosts better = is_a ? a : b;
    better.fill_up_from(is_a ? b : a);
    better.origin.tries = a.origin.tries + b.origin.tries;
    better.origin.load = std::min(a.origin.load, b.origin.load);  // the lowest load of a try
    return better;
}

void keep(const Keeping& keeping, const MachineCosts& costs) {
    const Status kept = keeping.is_in_cache ? sys::write_cached(keeping.path, costs.text())
                                            : sys::write_file(keeping.path, costs.text());
    if (kept.is_ok()) return;
    log(keeping.is_in_cache ? LogLevel::kInfo : LogLevel::kWarning,
        "this machine's costs are not kept: ", kept.message());
}

}  // namespace

std::string costs_path(const Config& config) {
    if (are_off(config)) return {};
    if (!config.costs_file.empty() || config.cache_folder.empty()) return config.costs_file;
    // The number changes with the set of figures and the method: files of other builds are not
    // used.
    return sys::cached_file(config.cache_folder, "costs-4");
}

Keeping keeping_of(const Config& config) {
    const auto cores = static_cast<int>(sys::allowed_cores().count());
    return {.path = costs_path(config),
            .is_in_cache = config.costs_file.empty(),
            .here = {.machine = concat(sys::machine_name(), "/", cores),
                     .boot = boot_id(),
                     .cores = cores,
                     .load = sys::load_average()},
            .now_ms = wall_clock_ms(),
            .measure = [] { return measure(); }};
}

MachineCosts costs_from(const Keeping& keeping) {
    const Result<MachineCosts> kept = read_costs(keeping.path);
    const bool is_of_here = kept.is_ok() && is_of(kept->origin, keeping.here);
    if (is_of_here && is_good(*kept, keeping)) return *kept;
    MachineCosts costs = keeping.measure();
    costs.origin.machine = keeping.here.machine;
    costs.origin.boot = keeping.here.boot;
    costs.origin.date = now_in_utc();
    if (is_of_here) costs = better_of(costs, *kept);
    if (may_replace(keeping, kept.status()) && !keeping.path.empty()) keep(keeping, costs);
    return costs;
}

Status check_costs_file(const Config& config) {
    if (are_off(config) || config.costs_file.empty()) return Status::ok();
    const Status found =
        sys::read_private(config.costs_file, MachineCosts::kMostBytes + 1).status();
    if (found.is_ok() || found.code() == StatusCode::kUnavailable) return Status::ok();
    return found.with_context(concat("PCCL_COSTS_FILE: ", config.costs_file));
}

bool are_off(const Config& config) { return config.costs_file == kOff; }

const MachineCosts& process_costs() {
    static const MachineCosts costs = are_off() ? MachineCosts() : costs_from(keeping_of());
    return costs;
}

}  // namespace pccl::costs
