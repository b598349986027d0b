// SPDX-License-Identifier: Apache-2.0

// Blocks of vectors.
#pragma once

#include <cstddef>
#include <vector>

#include <pccl/collective.h>

namespace pccl::comm {

inline Block block_of(std::vector<float>& values) {
    return {reinterpret_cast<std::byte*>(values.data()), values.size()};
}

}  // namespace pccl::comm
