// SPDX-License-Identifier: Apache-2.0

// Number of the lanes between two sessions (transport/rma/bundle.h).
#pragma once

#include <cstddef>
#include <string>

#include <pccl/export.h>
#include "csrc/bootstrap/core_claim.h"
#include "csrc/transport/doorbell.h"

namespace pccl::p2p {

struct LaneCount {
    std::size_t lanes = 0;  // equal on both sides; 0: one of them has one thread
    int helpers = 0;        // of this process, at most
    std::string reason{};   // why there are none; empty: there are some

    bool operator==(const LaneCount&) const = default;
};

/// Returns the lanes for the threads that both sides may run, by their claims. On one host they
/// share the cores that they have in common, also with the `crowd` of the groups of this process.
[[nodiscard]] PCCL_API LaneCount lanes_between(const bootstrap::CoreClaim& own,
                                               const bootstrap::CoreClaim& peer, bool is_on_host,
                                               const transport::Crowd& crowd);

}  // namespace pccl::p2p
