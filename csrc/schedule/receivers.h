// Whom a rank sends to.
#pragma once

#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// In ascending order, each once.
[[nodiscard]] PCCL_API std::vector<Rank> receivers_of(const Program& program);

}  // namespace pccl::schedule
