// SPDX-License-Identifier: Apache-2.0

// Sessions of the flight record as JSON; docs/reference/failure.md describes the fields.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "csrc/runtime/flight/session_recorder.h"

namespace pccl::runtime {

/// Returns {"events": [...], "transfers": [...]}.
[[nodiscard]] nlohmann::json json_of(const SessionRecorder& recorder);

}  // namespace pccl::runtime
