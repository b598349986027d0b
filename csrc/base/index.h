// SPDX-License-Identifier: Apache-2.0

// Conversion of the int numbers of ranks, chunks and nodes to the std::size_t indices of
// containers.
#pragma once

#include <cstddef>

namespace pccl {

constexpr std::size_t at(int id) { return static_cast<std::size_t>(id); }

}  // namespace pccl
