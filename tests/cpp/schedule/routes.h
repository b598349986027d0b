// SPDX-License-Identifier: Apache-2.0

// All-reduce schedules of a number of ranks.
#pragma once

#include <string_view>

#include "csrc/schedule/generators/generators.h"

namespace pccl::schedule {

inline Schedule all_reduce_of(std::string_view algorithm, int ranks) {
    const SourcePtr source = built_in(algorithm, CollectiveKind::kAllReduce).value();
    return *generate(*source, least_shape(*source, ranks));
}

}  // namespace pccl::schedule
