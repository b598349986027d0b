// SPDX-License-Identifier: Apache-2.0

// Options that a group passes on to a group that is made of its ranks.
#pragma once

#include <memory>
#include <vector>

#include "csrc/comm/options.h"
#include "csrc/comm/phase/phased_group.h"

namespace pccl::comm {

/// Converts the `options` of a group to those of a group of its ranks `members`, in that order.
/// This rank must be one of them.
[[nodiscard]] CommunicatorOptions of_members(CommunicatorOptions options,
                                             const std::vector<Rank>& members);

/// Makes the group follow the phases of its network, if it has one.
[[nodiscard]] Status join_network(const CommunicatorOptions& options,
                                  const std::shared_ptr<PhasedGroup>& group);

}  // namespace pccl::comm
