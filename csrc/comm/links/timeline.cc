#include "csrc/comm/links/timeline.h"

#include <utility>

namespace pccl::comm {

TimedStepFields fields_of(const TimedStep& step) {
    const auto ns = [](TimePoint time) { return time.time_since_epoch().count(); };
    return {
        step.sequence,  step.window,       step.lane,    step.step,       to_string(step.action),
        step.from.peer, step.from.channel, step.to.peer, step.to.channel, step.bytes,
        ns(step.begin), ns(step.moved),    ns(step.end)};
}

TimedSteps Timeline::take() {
    TimedSteps taken = std::exchange(taken_, {});
    taken.steps.resize(std::exchange(size_, 0));
    return taken;
}

}  // namespace pccl::comm
