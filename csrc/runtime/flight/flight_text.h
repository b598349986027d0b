// SPDX-License-Identifier: Apache-2.0

// Text descriptions of the flight recorder's operations.
#pragma once

#include <string>

#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::runtime {

/// Returns, for example, "all_reduce #7 (...)" or "send to rank 1 (tag 0, 64 bytes)".
[[nodiscard]] std::string describe(const FlightEntry& entry);

/// Returns a launch on a GPU without the way it runs: "all_reduce #7 (sum of 1024 float32) and 3
/// more".
[[nodiscard]] std::string describe_launch(const FlightEntry& entry);

}  // namespace pccl::runtime
