// One step on many switches at once, from one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/cluster/drivers/driver.h"

namespace pccl::cluster {

/// A switch's share of a step, and what became of it.
struct SwitchTask {
    Driver* driver = nullptr;
    Intent intent;
    Status status;
    Duration took{};
};

/// Asked about 20 times a second; an error ends a wait.
using Interrupted = std::function<Status()>;

struct ScatterCalls {
    std::function<void(std::size_t)> ended = {};  // told of each as it ends, by its place
    Interrupted interrupted = {};
};

/// Begins the step everywhere, then waits for all of them. What has no answer within `timeout`, or
/// when the wait is interrupted, ends with kTimeout, and its session with it. Returns what
/// interrupted it.
PCCL_API Status scatter(Step step, std::span<SwitchTask> parts, Duration timeout,
                        const ScatterCalls& calls = {});

}  // namespace pccl::cluster
