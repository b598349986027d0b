// What a group that is made out of another one takes over from it.
#pragma once

#include <memory>
#include <vector>

#include "csrc/comm/options.h"
#include "csrc/comm/phase/phased_group.h"

namespace pccl::comm {

/// `options` of a group, as they are for the group of its ranks `members`, this one among them, in
/// that order.
[[nodiscard]] CommunicatorOptions of_members(CommunicatorOptions options,
                                             const std::vector<Rank>& members);

/// Has the group follow the phases of the network that it is to be on.
[[nodiscard]] Status join_network(const CommunicatorOptions& options,
                                  const std::shared_ptr<PhasedGroup>& group);

}  // namespace pccl::comm
