// SPDX-License-Identifier: Apache-2.0

// The fault explorer: schedules over a loopback fabric where everything goes wrong by seed.
//
// All ranks of a run are stepped in turn on one thread, in an order that the seed draws, over links
// that write and read short, delay, reset, and processes that die at some step. A run is right when
// every rank either has the result that a direct computation gives, or an error; when nothing was
// broken by the plan, nobody has an error; and nobody is stuck. The same seed gives the same run.
#pragma once

#include <cstdint>
#include <string>

namespace pccl::comm::testing {

struct ChaosRun {
    std::string what;        // "ring all_reduce, 5 ranks, 1234 elements, resets"
    std::string fault;       // what was wrong; empty when the run was right
    bool disturbed = false;  // some rank had an error, as the plan wanted
};

[[nodiscard]] ChaosRun explore(std::uint64_t seed);

}  // namespace pccl::comm::testing
