// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/receivers.h"

#include <algorithm>

namespace pccl::schedule {

std::vector<Rank> receivers_of(const Program& program) {
    std::vector<Rank> receivers;
    for (const Lane& lane : program.lanes)
        for (const Step& step : lane)
            if (step.to.is_used()) receivers.push_back(step.to.peer);
    std::ranges::sort(receivers);
    const auto repeated = std::ranges::unique(receivers);
    receivers.erase(repeated.begin(), repeated.end());
    return receivers;
}

}  // namespace pccl::schedule
