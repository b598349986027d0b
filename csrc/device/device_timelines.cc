// SPDX-License-Identifier: Apache-2.0

// Times of the steps of a group's schedules on its GPU.
#include <optional>

#include "csrc/base/text/text.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/device/device_group.h"

namespace pccl::device {

template <typename Body>
Status DeviceGroupImpl::when_done(Body body) {
    PCCL_TRY(check_process());
    PCCL_TRY(why_over());
    if (!await_launches(Deadline::after(timeout_.load())))
        return Status::timeout("the GPU has not run the launched work, so it has no timeline yet");
    Status outcome;
    {
        // A thread of its own does this: the caller's may have another GPU current.
        const BackgroundThread doing("pccl-gpu-times", [&] {
            const std::lock_guard lock(mutex_);
            outcome = adopt_thread();
            if (outcome.is_ok()) outcome = body();
        });
    }
    return outcome;
}

Status DeviceGroupImpl::record_timeline(std::size_t most) {
    if (most > kMostTimedSteps)
        return Status::invalid_argument(
            concat("a timeline of ", most, " steps; at most ", kMostTimedSteps, " are recorded"));
    return when_done([&] { return timeline_.start(most); });
}

Result<schedule::TimedSteps> DeviceGroupImpl::take_timeline() {
    schedule::TimedSteps taken;
    PCCL_TRY(when_done([&]() -> Status {
        PCCL_ASSIGN_OR_RETURN(taken, timeline_.take());
        return Status::ok();
    }));
    return taken;
}

}  // namespace pccl::device
