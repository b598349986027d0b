// Numbers of ranks, as people read them.
#pragma once

#include <string>
#include <vector>

namespace pccl::capsule {

/// Of numbers that ascend: "2..4 8", runs of those that follow each other.
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);

}  // namespace pccl::capsule
