// SPDX-License-Identifier: Apache-2.0

// Status queries from outside of a process's groups (`pccl status`): an authenticated connection
// like every other, which may ask questions and nothing else. An onlooker needs the job's secret.
// Without such a secret it must run as the same user on the same host, where it could read the
// process's memory anyway.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

/// Group name of onlookers. No group has it, because names of groups are random.
inline constexpr GroupId kOnlookers{'p', 'c', 'c', 'l', ' ', 's', 't', 'a', 't', 'u', 's'};
/// Secret where the job has none: proves only that both sides run PCCL.
inline constexpr Secret kNoJobSecret{};

/// Question in the purpose of a connection.
struct StatusQuestion {
    GroupId group{};          // the group to list; zero: all groups of the process
    std::uint32_t first = 0;  // first entry: an answer contains a part of the list
};

/// Returns ControlHost::status() of the process at `door`. Errors are those of inquire();
/// kInvalidArgument where `job` is not the secret there.
[[nodiscard]] PCCL_API Result<std::string> ask_status(const sys::Address& door, const Secret& job,
                                                      const StatusQuestion& question,
                                                      Deadline deadline);

}  // namespace pccl::transport
