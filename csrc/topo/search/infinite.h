// SPDX-License-Identifier: Apache-2.0

// Cost of a missing path.
#pragma once

#include <limits>

namespace pccl::topo {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace pccl::topo
