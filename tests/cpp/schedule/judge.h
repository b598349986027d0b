// SPDX-License-Identifier: Apache-2.0

// A second opinion on a schedule, by other means than the verifier's and with none of its code.
#pragma once

#include <string>

#include "csrc/schedule/schedule.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::schedule::testing {

/// Empty if nothing is found, else what is wrong. Interprets the schedule on numbers in 50 random
/// orders (interpreter.h), and looks for two steps that touch one chunk, one of them to write it,
/// with no path between them in the full transitive closure of lane order, dependencies, messages
/// and slot reuse. Slow: for small schedules.
std::string judge(const Schedule& schedule, Placement placement);

}  // namespace pccl::schedule::testing
