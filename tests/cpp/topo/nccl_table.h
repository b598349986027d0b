// SPDX-License-Identifier: Apache-2.0

// What NCCL's search finds for the machines of tests/data/topology, and what ours does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "csrc/topo/search/search.h"

namespace pccl::topo {

/// One pattern of one line of nccl_search.tsv.
struct NcclRow {
    std::string name;
    std::string file;
    LoadOptions load{};
    SearchOptions search{};
    double bandwidth = 0;  // channels x the lower of both bandwidths, GB/s
    PathType type_intra = PathType::kDis;
    PathType type_inter = PathType::kDis;  // says nothing for one node
    double seconds = 0;                    // of the search; 0 where it is not given
    double path_seconds = 0;
};

[[nodiscard]] std::vector<NcclRow> nccl_rows();

/// Ours for the same: the fastest of a few runs, each from the parsed machine on.
struct OwnResult {
    ChannelPlan plan;
    double path_seconds = 0;
};
[[nodiscard]] OwnResult own_result(const NcclRow& row);

}  // namespace pccl::topo
