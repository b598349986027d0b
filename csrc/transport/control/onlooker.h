// Looking at a process from outside of its groups (`pccl status`): a proven connection like every
// other, which may ask questions and nothing else. Who knows the job's secret may look. Without one
// those may that run as the same user on the same host, who could read the process's memory anyway.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

/// The group that onlookers ask for. No other has its name, for theirs are random.
inline constexpr GroupId kOnlookers{'p', 'c', 'c', 'l', ' ', 's', 't', 'a', 't', 'u', 's'};
/// Where the job has no secret: proves only that both sides speak PCCL.
inline constexpr Secret kNoJobSecret{};

/// Travels in the purpose of a connection.
struct StatusQuestion {
    GroupId group{};          // whose members; zero: the groups that the process is in
    std::uint32_t first = 0;  // an answer holds a part of the list, from here on
};

/// What ControlHost::status() says at `door`. Errors are those of inquire(); kInvalidArgument where
/// `job` is not the secret there.
[[nodiscard]] PCCL_API Result<std::string> ask_status(const sys::Address& door, const Secret& job,
                                                      const StatusQuestion& question,
                                                      Deadline deadline);

}  // namespace pccl::transport
