// SPDX-License-Identifier: Apache-2.0

// Path from a host to the host of a group's first rank. It is timed once, when a group with ranks
// on both is created, and cached for a day.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <pccl/deadline.h>
#include "csrc/base/config.h"
#include "csrc/base/unique_fd.h"
#include "csrc/topo/machine/host_way.h"

namespace pccl::costs {

struct SoughtWay {
    std::string from;  // this host, as sys::host_identity() names it
    std::string to;    // the other host
    std::string name;  // name of the other host, for messages
    int hosts = 2;     // of the group: all but one measure a path to the same host concurrently
    double loopback_byte = 0;  // seconds; MachineCosts::tcp_byte of the other host
    /// Opens a connection whose other end answers echoes (sys/socket/echo.h).
    std::function<Result<UniqueFd>(Deadline)> connect{};
};

/// Returns the cached path if it is less than a day old. Otherwise measures it, in about 10 ms plus
/// 6 ms for each further host of the group, and at most 250 ms on the last one. Returns nullopt,
/// with a log entry, if the measurement fails, and with PCCL_COSTS_FILE=off. A disturbed
/// measurement is used once and not cached.
[[nodiscard]] std::optional<topo::HostWay> way_between(const SoughtWay& sought,
                                                       const Config& config = process_config());

/// Returns the cache file of this user's paths from this host; empty if the environment names no
/// place.
[[nodiscard]] std::string ways_path(const Config& config = process_config());

}  // namespace pccl::costs
