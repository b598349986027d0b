// SPDX-License-Identifier: Apache-2.0

// Choice of the protocol for a schedule's messages between GPUs; the same on all ranks.
#pragma once

#include <cstddef>
#include <optional>

#include "csrc/abi/device_team.h"
#include "csrc/kernels/plan.h"
#include "csrc/schedule/message_protocol.h"

namespace pccl::device {

/// Parameters of the choice for one launch.
struct ProtocolQuestion {
    std::size_t chunk_bytes = 0;
    bool suits_ll = false;                           // DeviceGrid::suits_ll
    bool is_short = true;                            // one LL window has room for all
    abi::LL128Trial ll128 = abi::LL128Trial::kNone;  // whether LL128 lines arrive whole
    std::optional<kernels::Protocol> preferred{};    // by the group's options
    std::optional<schedule::MessageProtocol>
        wanted{};  // by the schedule, where `preferred` is empty
    kernels::Thresholds::Schedules thresholds{};
};

struct ProtocolChoice {
    kernels::Protocol protocol{};
    const char* why = "";
    const char* obstacle = "";  // to a requested or faster protocol
};

/// Returns the requested protocol where it can carry the messages, otherwise the fastest.
[[nodiscard]] PCCL_API ProtocolChoice choose_protocol(const ProtocolQuestion& question);

}  // namespace pccl::device
