// SPDX-License-Identifier: Apache-2.0

// Description of a fault's place in verifier errors.
#pragma once

#include <string>

#include <pccl/status.h>
#include "csrc/base/text/text.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

struct StepPlace {
    Rank rank = 0;
    int lane = 0;
    int step = 0;
};

/// Returns "rank 0 lane 1 step 2 (recv_reduce output[3+1] from 2/0)".
[[nodiscard]] inline std::string describe(const StepPlace& place, const Step& step) {
    return concat("rank ", place.rank, " lane ", place.lane, " step ", place.step, " (",
                  to_string(step), ")");
}

template <typename... Parts>
[[nodiscard]] Status fault(const StepPlace& place, const Step& step, const Parts&... what) {
    return Status::invalid_argument(concat(describe(place, step), ": ", what...));
}

}  // namespace pccl::schedule
