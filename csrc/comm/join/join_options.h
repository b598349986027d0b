// SPDX-License-Identifier: Apache-2.0

// Options with which a rank joins a group: they are checked, completed from this process, and
// passed on to a group that is made of the ranks of another.
#pragma once

#include <memory>
#include <vector>

#include "csrc/bootstrap/endpoint.h"
#include "csrc/comm/group/options.h"
#include "csrc/comm/phase/phased_group.h"

namespace pccl::comm {

/// Returns kInvalidArgument if the options contradict each other.
[[nodiscard]] Status check_options(const CommunicatorImplOptions& options);
/// Sets the runtime and the placement of this process, if the options name none.
[[nodiscard]] Status use_this_process(CommunicatorImplOptions& options);
/// Returns the endpoint at which peers reach this rank by the transports of `options`.
[[nodiscard]] bootstrap::Endpoint endpoint_of(const runtime::Runtime& runtime,
                                              const CommunicatorImplOptions& options);

/// Converts the `options` of a group to those of a group of its ranks `members`, in that order.
/// This rank must be one of them.
[[nodiscard]] CommunicatorImplOptions of_members(CommunicatorImplOptions options,
                                                 const std::vector<Rank>& members);

/// Makes the group follow the phases of its network, if it has one.
[[nodiscard]] Status join_network(const CommunicatorImplOptions& options,
                                  const std::shared_ptr<PhasedGroup>& group);

}  // namespace pccl::comm
