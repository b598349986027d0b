// SPDX-License-Identifier: Apache-2.0

// Checks of the arguments that collectives share. A bad argument throws ValueError.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <string>
#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::backend {

/// Element counts of the blocks of a tensor.
using Parts = c10::SmallVector<std::size_t, 8>;

/// Returns the only tensor (or list) of this process. Lists of several were meant for several
/// devices per process.
template <typename Item>
const Item& only(const std::vector<Item>& items, const char* what) {
    TORCH_CHECK_VALUE(items.size() == 1, "PCCL expects one ", what, ", got ", items.size());
    return items.front();
}

inline schedule::CollectiveKind collective_called(const std::string& name) {
    const auto kind = schedule::collective_named(name);
    TORCH_CHECK_VALUE(kind, "'", name, "' is no collective; there are ",
                      schedule::names_of_collectives());
    return *kind;
}

inline void check_root(std::int64_t root, int size) {
    TORCH_CHECK_VALUE(root >= 0 && root < size, "root ", root, " is not a rank of this group of ",
                      size);
}

/// Throws unless both tensors of a call are on one device.
inline void check_one_device(const at::Device& first, const at::Device& other) {
    TORCH_CHECK_VALUE(first == other, "tensors on ", first, " and on ", other, " in one call");
}

inline Parts equal_parts(const at::Tensor& whole, int parts) {
    const auto count = static_cast<std::size_t>(whole.numel());
    const auto number = static_cast<std::size_t>(parts);
    TORCH_CHECK_VALUE(count % number == 0, "a tensor of ", count, " elements cannot be cut into ",
                      parts, " equal parts");
    return Parts(number, count / number);
}

}  // namespace pccl::backend
