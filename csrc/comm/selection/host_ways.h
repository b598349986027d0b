// The way from a host to that of a group's first rank: timed once, when a group of ranks on both is
// made, and kept for a day.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/unique_fd.h"
#include "csrc/topo/machine/host_way.h"

namespace pccl::comm {

struct SoughtWay {
    std::string from;          // this host, as sys::host_identity() names it
    std::string to;            // the other one
    std::string name;          // of that, for messages
    int hosts = 2;             // of the group: all but one seek a way to the same host at a time
    double loopback_byte = 0;  // seconds, as MachineCosts::tcp_byte of the other host
    /// A connection at whose other end echoes are answered (sys/socket/echo.h).
    std::function<Result<UniqueFd>(Deadline)> connect{};
};

/// As it was found within a day, else as it is found now, in some 10 ms and 6 more for each further
/// host of the group; of the last one, 250 ms at most. nullopt where that does not do, which the
/// log says, and with PCCL_COSTS_FILE=off. What others disturbed counts once, and is not kept.
[[nodiscard]] std::optional<topo::HostWay> way_between(const SoughtWay& sought,
                                                       const Config& config = process_config());

/// Where this user's ways from this host are kept; empty where the environment names no place.
[[nodiscard]] std::string ways_path(const Config& config = process_config());

}  // namespace pccl::comm
