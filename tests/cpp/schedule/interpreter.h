// SPDX-License-Identifier: Apache-2.0

// Runs a schedule on numbers, one random runnable lane at a time, and compares with plain loops.
//
// Deliberately naive, and shares no code with the verifier: two opinions on one schedule.
#pragma once

#include <random>
#include <string>

#include "csrc/schedule/schedule.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::schedule::testing {

/// Empty if all went well, else what went wrong: a wrong result, a changed input, a deadlock, a
/// touch of memory that does not exist, a message of another length than its receiver expects.
/// Needs a schedule whose ranks, lanes and slices are in range. `random` decides who runs next.
std::string interpret(const Schedule& schedule, Placement placement, std::mt19937_64& random);

}  // namespace pccl::schedule::testing
