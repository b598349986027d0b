// SPDX-License-Identifier: Apache-2.0

// Memory with a value in each byte, and a short deadline.
#pragma once

#include <algorithm>

#include "tests/fakes/deadlines.h"

namespace pccl::comm {

inline Deadline shortly() { return Deadline::after(std::chrono::milliseconds(30)); }

inline void fill(std::span<std::byte> memory, int value) {
    std::fill(memory.begin(), memory.end(), static_cast<std::byte>(value));
}

inline bool holds(std::span<const std::byte> memory, int value) {
    return std::all_of(memory.begin(), memory.end(),
                       [value](std::byte byte) { return byte == static_cast<std::byte>(value); });
}

}  // namespace pccl::comm
