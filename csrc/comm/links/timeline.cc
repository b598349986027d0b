// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/links/timeline.h"

#include <utility>

namespace pccl::comm {

TimedSteps Timeline::take() {
    TimedSteps taken = std::exchange(taken_, {});
    taken.steps.resize(std::exchange(size_, 0));
    return taken;
}

}  // namespace pccl::comm
