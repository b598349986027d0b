// What moving bytes costs in a group: a few constants for the slowest kind of link that it uses.
#pragma once

#include <cstddef>

#include "csrc/comm/roster.h"
#include "csrc/schedule/cost.h"

namespace pccl::comm {

struct LinkModel {
    double round_seconds = 0;     // from a send to its receiver's next send, nothing else going on
    double message_seconds = 0;   // of a rank's time for each message it sends or receives
    double seconds_per_byte = 0;  // of a rank's time, for sending or receiving
    double reduce_seconds_per_byte = 0;
    std::size_t capacity = 0;  // bytes that every channel of every link holds
};

/// Whether all ranks share one host, and may use its memory.
[[nodiscard]] bool is_on_one_host(const Roster& roster);

/// The same on every rank of `roster`.
[[nodiscard]] LinkModel link_model(const Roster& roster);

[[nodiscard]] double predict(const LinkModel& links, const schedule::Cost& cost);

}  // namespace pccl::comm
