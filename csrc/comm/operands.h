// Memory and arithmetic of one operation, as executors see them.
#pragma once

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

}  // namespace pccl::comm
