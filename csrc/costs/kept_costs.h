// The costs of this machine, measured once a boot and kept in a file.
#pragma once

#include <functional>
#include <string>

#include "csrc/base/config.h"
#include "csrc/costs/machine_costs.h"

namespace pccl::costs {

/// Measurements that others disturbed are repeated, when the next process asks, up to so many
/// times; later ones only under less than half the load, or when so many minutes have gone by since
/// the one that counts, then twice as many, and so on.
inline constexpr int kMostTries = 3;
inline constexpr int kMinutesToFourthTry = 10;

/// Where costs are kept, and for whom.
struct Keeping {
    std::string path{};           // empty: nowhere
    bool may_be_replaced = true;  // though it holds something else
    Origin here{};                // the machine and boot that figures must be of; the load now
    long long now_ms = 0;         // as wall_clock_ms() has it
    std::function<MachineCosts()> measure{};
};
[[nodiscard]] PCCL_API Keeping keeping_of(const Config& config = process_config());

/// What is kept there; where it is of another boot or machine, or was disturbed, what is measured
/// now, which is then kept. A file that cannot be used (one that is a link, somebody else's, too
/// long, or no costs) is named in a warning.
[[nodiscard]] PCCL_API MachineCosts costs_from(const Keeping& keeping);

/// Where those of this machine are kept: PCCL_COSTS_FILE, or else a file in the user's cache that
/// is named after the machine. Empty with PCCL_COSTS_FILE=off, or where the environment names no
/// place.
[[nodiscard]] PCCL_API std::string costs_path(const Config& config = process_config());

/// kInvalidArgument where PCCL_COSTS_FILE names what is there, and no file of this user's or
/// root's alone. Groups begin with it.
[[nodiscard]] PCCL_API Status check_costs_file(const Config& config = process_config());

/// PCCL_COSTS_FILE=off: nothing is measured or read.
[[nodiscard]] PCCL_API bool are_off(const Config& config = process_config());

/// Of this process, at its first use; with PCCL_COSTS_FILE=off the defaults.
[[nodiscard]] PCCL_API const MachineCosts& process_costs();

}  // namespace pccl::costs
