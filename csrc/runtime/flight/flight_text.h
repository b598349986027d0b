// Operations of the flight recorder in words.
#pragma once

#include <string>

#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::runtime {

/// "all_reduce #7 (...)", "send to rank 1 (tag 0, 64 bytes)".
[[nodiscard]] std::string describe(const FlightEntry& entry);

/// What was launched on a GPU, without how it runs: "all_reduce #7 (sum of 1024 float32) and 3
/// more".
[[nodiscard]] std::string describe_launch(const FlightEntry& entry);

}  // namespace pccl::runtime
