// SPDX-License-Identifier: Apache-2.0

// Runs one function as every rank of a group: threads of this process, each with a runtime of its
// own, so that they meet over real sockets and shared memory as processes would.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "csrc/comm/communicator.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::comm {

struct RanksOptions {
    int size = 2;
    transport::TransportFlags transports = transport::TransportKind::kShm;
    std::chrono::milliseconds timeout{60'000};
    std::string algorithm{};  // as CommunicatorOptions has it, and what follows
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in();
    bool on_hosts_of_their_own = false;                     // as far as they say; only over kTcp
    std::vector<std::shared_ptr<PhaseNetwork>> networks{};  // by rank; empty: none
};

/// Fails the running test where a communicator cannot be made; returns when all ranks are through.
void run_ranks(const RanksOptions& options, const std::function<void(CommunicatorImpl&)>& body);

}  // namespace pccl::comm
