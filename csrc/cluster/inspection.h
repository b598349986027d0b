// SPDX-License-Identifier: Apache-2.0

// Inspection of switches: actual circuits against phases.
#pragma once

#include <string>
#include <vector>

#include <pccl/cluster.h>
#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/scatter.h"

namespace pccl::cluster {

struct NamedDriver {
    std::string name;
    SwitchDriver* driver = nullptr;
};

/// Reads the circuits of each switch, with `timeout` for each step. Reconnects if a session has
/// ended since its last use. After an interruption, unread switches have an error status.
[[nodiscard]] std::vector<Sight> look_at(const std::vector<NamedDriver>& switches, Duration timeout,
                                         const Interrupted& interrupted = {});

}  // namespace pccl::cluster
