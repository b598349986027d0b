// What switches show, against what is meant.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/scatter.h"

namespace pccl::cluster {

/// Of one switch.
struct Sight {
    std::string name;
    Status status;  // why there is nothing to be seen
    Circuits circuits;
    std::vector<int> dark;  // ingress ports of these through which no light comes
};

struct Inspection {
    std::vector<Sight> switches;
    std::string phase;  // whose circuits all of them show; empty: no phase's
};

struct NamedDriver {
    std::string name;
    Driver* driver = nullptr;
};

/// What each has connected, `timeout` for each step; where a session has ended since it was last
/// used, over a new one. What is not seen yet when it is interrupted has a status.
[[nodiscard]] std::vector<Sight> look_at(const std::vector<NamedDriver>& switches, Duration timeout,
                                         const Interrupted& interrupted = {});

}  // namespace pccl::cluster
