// SPDX-License-Identifier: Apache-2.0

// Bytes whose places can be told apart.
#pragma once

#include <cstddef>
#include <vector>

namespace pccl::sys {

inline std::vector<std::byte> counted(std::size_t bytes) {
    std::vector<std::byte> values(bytes);
    for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::byte>(i * 29 + i / 256);
    return values;
}

}  // namespace pccl::sys
