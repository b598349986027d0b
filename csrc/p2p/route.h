// SPDX-License-Identifier: Apache-2.0

// Routes of bytes between two sessions.
#pragma once

#include <string>

#include "csrc/p2p/plan.h"
#include "csrc/runtime/flight/session_recorder.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::p2p {

/// Route to a peer, with the reasons why it is not a faster one.
struct Route {
    transport::TransportKind kind = transport::TransportKind::kShm;
    /// Whether each side copies by itself. Otherwise the peer serves requests.
    bool is_direct = false;
    std::string reasons{};
};

/// Returns the path that the blocks of a plan take; docs/reference/p2p.md lists all of them.
[[nodiscard]] runtime::SessionPath route_of(const Route& route, const Plan& plan);

}  // namespace pccl::p2p
