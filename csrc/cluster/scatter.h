// One step on many switches at once, from one thread.
#pragma once

#include <span>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/cluster/drivers/driver.h"

namespace pccl::cluster {

/// A switch's share of a step, and what became of it.
struct Part {
    Driver* driver = nullptr;
    Intent intent;
    Status status;
    Duration took{};
};

/// Begins the step everywhere, then waits for all of them. What has no answer within `timeout`
/// ends with kTimeout, and its session with it.
PCCL_API void scatter(Step step, std::span<Part> parts, Duration timeout);

}  // namespace pccl::cluster
