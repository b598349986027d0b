// SPDX-License-Identifier: Apache-2.0

// Timeouts as torch passes them: whole milliseconds, converted from timedeltas.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "csrc/base/text/text.h"
#include "csrc/base/time_limit.h"
#include "csrc/torch/errors.h"

namespace pccl::backend {

/// Returns the timeout, or kNoLimit for longer ones. Throws, as `operation`, for negative ones.
[[nodiscard]] inline std::chrono::milliseconds limit_of(std::chrono::milliseconds given,
                                                        std::string_view operation) {
    // A timedelta of more than 292,000 years, such as timedelta.max, overflows in pybind11's
    // conversion to microseconds. It mostly arrives as less than any timeout that a user means.
    constexpr std::chrono::milliseconds kLeastMeant = -std::chrono::years(100);
    if (given > kNoLimit || given < kLeastMeant) return kNoLimit;
    if (given >= std::chrono::milliseconds::zero()) return given;
    throw_status(operation, Status::invalid_argument(
                                concat("timeout is ", given.count(),
                                       " ms: give a timedelta from 0 on, or timedelta.max for no "
                                       "limit")));
}

/// Returns nullopt where torch has set no timeout: the group's timeout applies then.
[[nodiscard]] inline std::optional<std::chrono::milliseconds> timeout_of(
    std::chrono::milliseconds timeout, std::string_view operation) {
    if (timeout == c10d::kUnsetTimeout) return std::nullopt;
    return limit_of(timeout, operation);
}

}  // namespace pccl::backend
