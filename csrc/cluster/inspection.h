// What switches show, against what is meant.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/cluster/model/circuits.h"

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

}  // namespace pccl::cluster
