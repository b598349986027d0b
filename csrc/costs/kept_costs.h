// SPDX-License-Identifier: Apache-2.0

// Cache file of this machine's costs, which are measured once a boot.
#pragma once

#include <functional>
#include <string>

#include "csrc/base/config.h"
#include "csrc/costs/machine_costs.h"

namespace pccl::costs {

/// Limits for the repetition of disturbed measurements, by the next process that needs them: up to
/// kMostTries measurements; after that only under less than half the load, or when
/// kMinutesToFourthTry minutes have passed since the current measurement, then twice as many, and
/// so on.
inline constexpr int kMostTries = 3;
inline constexpr int kMinutesToFourthTry = 10;

/// Location of cached costs, and the machine that they must fit.
struct Keeping {
    std::string path{};       // empty: no file
    bool is_in_cache = true;  // then missing folders are made, and other content is replaced
    Origin here{};            // machine and boot that the figures must match; the current load
    long long now_ms = 0;     // as wall_clock_ms() returns it
    std::function<MachineCosts()> measure{};
};
[[nodiscard]] PCCL_API Keeping keeping_of(const Config& config = process_config());

/// Returns the cached costs. If they are of another boot or machine, or were disturbed, measures
/// anew and caches the result. An unusable file (a link, another user's, too long, or without
/// costs) is reported in a warning.
[[nodiscard]] PCCL_API MachineCosts costs_from(const Keeping& keeping);

/// Returns the file of this machine's costs: PCCL_COSTS_FILE, or else a file in the user's cache
/// that is named after the machine. Empty with PCCL_COSTS_FILE=off, or if the environment names no
/// place.
[[nodiscard]] PCCL_API std::string costs_path(const Config& config = process_config());

/// Returns kInvalidArgument if PCCL_COSTS_FILE exists and is no private file of this user or root.
/// Groups check it first.
[[nodiscard]] PCCL_API Status check_costs_file(const Config& config = process_config());

/// Returns whether PCCL_COSTS_FILE=off: nothing is measured or read.
[[nodiscard]] PCCL_API bool are_off(const Config& config = process_config());

/// Returns the costs of this process, loaded on first use; the defaults with PCCL_COSTS_FILE=off.
[[nodiscard]] PCCL_API const MachineCosts& process_costs();

}  // namespace pccl::costs
