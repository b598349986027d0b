// SPDX-License-Identifier: Apache-2.0

// One step on many switches at once, from one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <pccl/cluster.h>
#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/cluster/drivers/driver.h"

namespace pccl::cluster {

/// Task of one switch in a step, with its result.
struct SwitchTask {
    SwitchDriver* driver = nullptr;
    Intent intent;
    Status status;
    Duration took{};
};

struct ScatterCalls {
    std::function<void(std::size_t)> ended = {};  // called with the index of each task that ends
    Interrupted interrupted = {};
};

/// Begins the step on all switches, then waits for all. A task without a result after `timeout`, or
/// at an interruption, ends with kTimeout, and its session is closed. Returns the error of the
/// interruption.
PCCL_API Status scatter(Step step, std::span<SwitchTask> parts, Duration timeout,
                        const ScatterCalls& calls = {});

}  // namespace pccl::cluster
