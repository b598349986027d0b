// What the cost model says of one way to make a collective.
#pragma once

#include <string>
#include <string_view>

namespace pccl {

struct Prediction {
    std::string algorithm;  // as PCCL_ALGORITHM has it
    std::string_view over;  // "board" or "links"
    double seconds = 0;
    std::string busiest{};  // the link that ranks share most: "eth0 of node7, 1.25 GB/s"; or empty
    bool is_chosen = false;
};

}  // namespace pccl
