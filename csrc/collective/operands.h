// Memory and arithmetic of one operation, as executors see them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/collective/collective.h"

namespace pccl {

struct Operands {
    std::vector<Block> inputs;
    std::vector<Block> outputs;
    std::size_t element_bytes = 1;
    arithmetic::Combine combine = nullptr;  // null where nothing is reduced
};

/// Elements of the longest block of either side.
[[nodiscard]] inline std::size_t longest(const Operands& operands) {
    return std::max(longest(operands.inputs), longest(operands.outputs));
}

}  // namespace pccl
