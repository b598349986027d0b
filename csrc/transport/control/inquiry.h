// SPDX-License-Identifier: Apache-2.0

// Query of a process's state, on a connection of its own: authenticated like every other, one
// answer, then closed. The acceptor thread answers, independently of the process's user.
//
// Onlookers (`pccl status`) query from outside of the process's groups: their connection may
// request questions and nothing else. An onlooker needs the job's secret. Without such a secret it
// must run as the same user on the same host, where it could read the process's memory anyway.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "csrc/base/ids.h"
#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

/// Limit of an answer in bytes.
inline constexpr std::size_t kLongestAnswer = 16 * kKiB;

/// Sends a query and returns the answer. Errors are those of connect_authenticated(), and kPeerLost
/// where the answer is cut short.
[[nodiscard]] PCCL_API Result<std::string> inquire(const ConnectArgs& args,
                                                   const Introduction& introduction,
                                                   Deadline deadline);

/// Answers at the other end, on an authenticated socket; does not block. `text` is cut at
/// kLongestAnswer.
PCCL_API void answer(int socket, std::string_view text);

/// Group name of onlookers. No group has it, because names of groups are random.
inline constexpr GroupId kOnlookers{'p', 'c', 'c', 'l', ' ', 's', 't', 'a', 't', 'u', 's'};
/// Secret where the job has none: proves only that both sides run PCCL.
inline constexpr Secret kNoJobSecret{};

/// List that an onlooker requests of one group.
enum class StatusSubject : std::uint32_t { kMembers, kHistory };

/// Question in the purpose of a connection.
struct StatusQuestion {
    GroupId group{};          // the group to list; zero: all groups of the process
    std::uint32_t first = 0;  // first entry: an answer contains a part of the list
    StatusSubject subject = StatusSubject::kMembers;
};

/// Returns ControlHost::status() of the process at `door`. Errors are those of inquire();
/// kInvalidArgument where `job` is not the secret there.
[[nodiscard]] PCCL_API Result<std::string> request_status(const sys::Address& door,
                                                          const Secret& job,
                                                          const StatusQuestion& question,
                                                          Deadline deadline);

}  // namespace pccl::transport
