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
#include "csrc/runtime/flight/usage_history.h"

namespace pccl::runtime {

/// Returns "version", "host", "pid", and one moment on both clocks: "wall_ms", "steady_ns".
[[nodiscard]] nlohmann::json flight_head();

/// Progress of the groups on GPUs, by group id.
using ProgressOnGpus = std::map<std::uint32_t, FlightProgress>;
[[nodiscard]] ProgressOnGpus progress_of(std::span<const FlightGroup> groups);

/// Returns "run_s" and "queued_s" of this process's threads (sys::CpuTimes).
[[nodiscard]] nlohmann::json json_of_cpu_times();
/// Returns "shm" and "links", each with "calls", "bytes", "seconds" and "predicted_s"; "between_s";
/// "waits", each with "rank", "for" and "seconds"; "paths", each with "peer", "interface", "bytes",
/// "resent", "round_trip_s" and "busy_s"; and "messages" with "sent", "received", "seconds" and
/// "waits".
[[nodiscard]] nlohmann::json json_of(const UsageSnapshot& usage);
/// Returns "begin_s", "length_s", "cpu" and "usage". The parts of "usage" without calls are absent.
[[nodiscard]] nlohmann::json json_of(const UsageWindow& window);

[[nodiscard]] nlohmann::json json_of(const FlightGroup& group, const ProgressOnGpus& on_gpus);
[[nodiscard]] nlohmann::json json_of(const FlightEntry& entry, const ProgressOnGpus& on_gpus);

}  // namespace pccl::runtime
