// What the cost model says of one way to make a collective.
#pragma once

#include <string_view>

namespace pccl::comm {

struct Prediction {
    std::string_view algorithm;  // as PCCL_ALGORITHM has it
    std::string_view over;       // "board" or "links"
    double seconds = 0;
    bool is_chosen = false;
};

}  // namespace pccl::comm
