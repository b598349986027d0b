// How the messages of a schedule travel between GPUs: the same on all ranks.
#pragma once

#include <cstddef>
#include <optional>

#include "csrc/abi/device_team.h"
#include "csrc/kernels/plan.h"
#include "csrc/schedule/message_protocol.h"

namespace pccl::device {

/// Of one launch.
struct ProtocolQuestion {
    std::size_t chunk_bytes = 0;
    bool suits_ll = false;                              // DeviceGrid::suits_ll
    bool is_short = true;                               // one LL window has room for all
    abi::LL128Trial ll128 = abi::LL128Trial::kNone;     // whether they come whole
    std::optional<kernels::Protocol> preferred{};       // by the group's options
    std::optional<schedule::MessageProtocol> wanted{};  // by the schedule, where those say nothing
    kernels::Thresholds::Schedules thresholds{};
};

struct ProtocolChoice {
    kernels::Protocol protocol{};
    const char* why = "";
    const char* obstacle = "";  // to another, that was asked for or takes less time
};

/// What was asked for, where messages can go by it, else what takes the least time.
[[nodiscard]] PCCL_API ProtocolChoice choose_protocol(const ProtocolQuestion& question);

}  // namespace pccl::device
