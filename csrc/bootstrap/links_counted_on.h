#pragma once

#include <string>
#include <vector>

#include "csrc/base/ids.h"

namespace pccl::bootstrap {

/// What predictions rest on.
struct LinksCountedOn {
    std::vector<std::string> links;  // "eth0 of node7: 1.25 GB/s, measured"
    std::vector<Rank> order;         // of rings and trees
    int lanes = 1;                   // rings side by side
};

}  // namespace pccl::bootstrap
