// SPDX-License-Identifier: Apache-2.0

// Groups and operations of the flight recorder as JSON; docs/reference/failure.md describes
// the fields.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::runtime {

/// Returns "version", "host", "pid", and one moment on both clocks: "wall_ms", "steady_ns".
[[nodiscard]] nlohmann::json flight_head();

/// Progress of the groups on GPUs, by group id.
using ProgressOnGpus = std::map<std::uint32_t, FlightProgress>;
[[nodiscard]] ProgressOnGpus progress_of(std::span<const FlightGroup> groups);

[[nodiscard]] nlohmann::json json_of(const FlightGroup& group, const ProgressOnGpus& on_gpus);
[[nodiscard]] nlohmann::json json_of(const FlightEntry& entry, const ProgressOnGpus& on_gpus);

}  // namespace pccl::runtime
