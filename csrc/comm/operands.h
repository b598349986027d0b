// Memory and arithmetic of one operation, as executors see them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "csrc/comm/arithmetic.h"
#include "csrc/comm/collective.h"

namespace pccl::comm {

struct Operands {
    std::vector<Block> inputs;
    std::vector<Block> outputs;
    std::size_t element_bytes = 1;
    Combine combine = nullptr;  // null where nothing is reduced
};

/// Elements of the longest block of either side.
[[nodiscard]] inline std::size_t longest(const Operands& operands) {
    return std::max(longest(operands.inputs), longest(operands.outputs));
}

}  // namespace pccl::comm
