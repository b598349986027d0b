// SPDX-License-Identifier: Apache-2.0

// Hosts of a job for tests.
#pragma once

#include "csrc/topo/job/job.h"
#include "tests/cpp/topo/machines.h"

namespace pccl::topo {

inline HostTopology host(const std::string& name, Rank first, const std::string& file) {
    std::vector<Rank> ranks;
    const Topology topology = load(file);
    for (std::size_t i = 0; i < topology.graph().gpus().size(); ++i)
        ranks.push_back(first + static_cast<Rank>(i));
    return {name, ranks, topology};
}

inline HostWay way_to(const std::string& name) {
    return {.to = name,
            .date = "2026-11-27T08:00:00Z",
            .round = 24e-6,
            .message = 3e-6,
            .byte = 0.5e-9};
}

}  // namespace pccl::topo
