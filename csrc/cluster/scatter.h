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
struct Part {
    Driver* driver = nullptr;
    Intent intent;
    Status status;
    Duration took{};
};

/// Begins the step everywhere, then waits for all of them. What has no answer within `timeout`
/// ends with kTimeout, and its session with it.
/// `ended` is told of each as it ends, by its place.
PCCL_API void scatter(Step step, std::span<Part> parts, Duration timeout,
                      const std::function<void(std::size_t)>& ended = {});

}  // namespace pccl::cluster
