// SPDX-License-Identifier: Apache-2.0

// The devices of this process, by FAKE_VERBS_DEVICES: a list of NAME[:PORTS][:OPTION...] with
// commas between, and options "ib" (InfiniBand instead of Ethernet), "iwarp"
// (without writes with immediate; its queue pairs are connected by rdma_cm alone; so are those of
// names that begin with siw), "down" (ports that are not
// active), "mtu=1024" and "speed=edr" (sdr, ddr, qdr, fdr, edr, hdr, ndr), for example
// "mlx5_0:2,mlx5_1:ib". Without it there is one, "fake0". Devices of the same name in processes of
// one FAKE_VERBS_HOST (a number, 0 without) are the same.
#pragma once

#include <vector>

#include "tests/fakes/verbs/objects.h"

namespace pccl::fake_verbs {

/// All of them; they exist until the process ends.
const std::vector<Device*>& devices();

/// The port of a context; null where there is no such.
SharedPort* find_port_of(ibv_context* context, uint32_t port);

/// The index, in the fabric's table, of a port of the calling process's host; kNone if there is
/// none.
Index find_port_named(const char* device, int port);

/// Gives an event to each context of a device that the caller's host has.
void push_device_event(Index first_port, int ports, ibv_event_type type, uint64_t element);

bool is_soft(const Device& device);

}  // namespace pccl::fake_verbs
