// SPDX-License-Identifier: Apache-2.0

// Queues for the messages of a plan.
#pragma once

#include <vector>

#include "csrc/capsule/mscclpp/execution.h"

namespace pccl::capsule::mscclpp {

/// Returns whether `a` is sent before `b` by one thread block: at one operation, messages are sent
/// in the order of their receipts.
[[nodiscard]] bool sent_before(const Delivery& a, const Delivery& b);
/// Returns whether `a` is received before `b` by one thread block; otherwise like sent_before().
[[nodiscard]] bool received_before(const Delivery& a, const Delivery& b);

/// Assigns a channel to each message. The messages of a channel go from one thread block to one
/// other, which receives them in the order of their sending.
void assign_channels(std::vector<Delivery>& deliveries);

}  // namespace pccl::capsule::mscclpp
