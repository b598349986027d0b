// The cost of a way that is not there.
#pragma once

#include <limits>

namespace pccl::topo {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace pccl::topo
