// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/timed_step.h"

namespace pccl::schedule {

TimedStepFields fields_of(const TimedStep& step) {
    const auto ns = [](TimePoint time) { return time.time_since_epoch().count(); };
    return {step.sequence,          step.window,    step.lane,         step.step,
            to_string(step.action), step.from.peer, step.from.channel, step.to.peer,
            step.to.channel,        step.bytes,     step.is_on_gpu,    ns(step.begin),
            ns(step.moved),         ns(step.end)};
}

}  // namespace pccl::schedule
