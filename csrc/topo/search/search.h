// Finds the channels with the most bandwidth for a machine.
//
// The plan has the best types of path with which every GPU can be reached, and of the plans with
// these types the most bandwidth that fits into all links at once; a worse type to the NICs is
// taken where it doubles the bandwidth. What a channel takes of the links on its way, in units of
// its bandwidth b:
//
//   ring   every hop 1 of each link (PathTable::charges); between nodes the last GPU's path to the
//   NIC
//          and the NIC's path to the first GPU replace the hop from last to first
//   tree   a chain: an all-reduce moves b/2 up and b/2 down, so each hop 1/2 both ways; and
//          (nodes - 1) / nodes of the first GPU's paths from and to the NIC, which is the average
//          over both trees of a double binary tree
//   heads  reduced and multicast in the NVSwitch: of each GPU's NVLinks 1 both ways, of the head's
//   2;
//          and 1 of the head's paths from and to its NIC
//
// Channels whose two NICs differ come in pairs, one the reverse of the other, so that nodes may
// swap them and rails stay apart.
#pragma once

#include "csrc/base/status.h"
#include "csrc/topo/search/plan.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// Deterministic. kInvalidArgument for options out of range; kUnsupported, saying why, for a
/// machine without GPUs, or one that cannot make the pattern.
[[nodiscard]] PCCL_API Result<Plan> search(const Topology& topology, const SearchOptions& options);

}  // namespace pccl::topo
