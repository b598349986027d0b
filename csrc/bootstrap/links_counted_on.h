// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "csrc/base/ids.h"

namespace pccl::bootstrap {

/// Assumptions of predictions.
struct LinksCountedOn {
    std::vector<std::string> links;  // "eth0 of node7: 1.25 GB/s, measured"
    std::vector<Rank> order;         // in rings and trees
    int ring_count = 1;              // parallel rings
    std::string costs_from{};  // "measured 2026-11-25T21:40:03Z, load 0.1", or "defaults, ..."
    std::vector<std::string> costs{};  // "beat: 0.21 us, measured (...)"
};

}  // namespace pccl::bootstrap
