// SPDX-License-Identifier: Apache-2.0

// Inspection of switches: actual circuits against phases.
#pragma once

#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/scatter.h"

namespace pccl::cluster {

/// Reading of one switch.
struct Sight {
    std::string name;
    Status status;  // the error if it could not be read
    Circuits circuits;
    std::vector<int> dark;  // ingress ports of these circuits without light
};

struct Inspection {
    std::vector<Sight> switches;
    std::string phase;  // phase whose circuits all of them show; empty: none
};

struct NamedDriver {
    std::string name;
    Driver* driver = nullptr;
};

/// Reads the circuits of each switch, with `timeout` for each step. Reconnects if a session has
/// ended since its last use. After an interruption, unread switches have an error status.
[[nodiscard]] std::vector<Sight> look_at(const std::vector<NamedDriver>& switches, Duration timeout,
                                         const Interrupted& interrupted = {});

}  // namespace pccl::cluster
