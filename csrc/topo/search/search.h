// SPDX-License-Identifier: Apache-2.0

// Search for the channels with the most bandwidth on a machine.
//
// The plan has the best path types with which every GPU can be reached, and among the plans with
// these types the most bandwidth that fits into all links at once. A worse type to the NICs is used
// if it doubles the bandwidth. The usage of links by a channel, in units of its bandwidth b, is:
//
//   ring   every hop 1 of each link (PathTable::charges); between nodes the last GPU's path to the
//          NIC and the NIC's path to the first GPU replace the hop from last to first
//   tree   a chain: an all-reduce moves b/2 up and b/2 down, so each hop 1/2 both ways; and
//          (nodes - 1) / nodes of the first GPU's paths from and to the NIC, which is the
//          average over both trees of a double binary tree
//   heads  reduced and multicast in the NVSwitch: of each GPU's NVLinks 1 both ways, of the
//          head's 2; and 1 of the head's paths from and to its NIC
//
// Channels whose two NICs differ come in pairs, one the reverse of the other, so that nodes may
// swap them and rails stay separate.
#pragma once

#include <pccl/status.h>
#include "csrc/topo/search/plan.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// Searches for a plan; deterministic. kInvalidArgument: options are out of range. kUnsupported,
/// with the reason: the machine has no GPUs, or cannot form the pattern.
[[nodiscard]] PCCL_API Result<ChannelPlan> search(const Topology& topology,
                                                  const SearchOptions& options);

}  // namespace pccl::topo
