// What the cost model says of one way to make a collective.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/ids.h"

namespace pccl::comm {

struct Prediction {
    std::string_view algorithm;  // as PCCL_ALGORITHM has it
    std::string_view over;       // "board" or "links"
    double seconds = 0;
    std::string busiest{};  // the link that ranks share most: "eth0 of node7, 1.25 GB/s"; or empty
    bool is_chosen = false;
};

/// What predictions rest on.
struct LinksCountedOn {
    std::vector<std::string> links;  // "eth0 of node7: 1.25 GB/s, measured"
    std::vector<Rank> order;         // of rings and trees
    int lanes = 1;                   // rings side by side
};

}  // namespace pccl::comm
