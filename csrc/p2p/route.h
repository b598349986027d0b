// How bytes go between two sessions.
#pragma once

#include <string>

#include "csrc/p2p/plan.h"
#include "csrc/runtime/flight/session_recorder.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::p2p {

/// How bytes go to a peer, and why not faster.
struct Route {
    transport::TransportKind kind = transport::TransportKind::kShm;
    /// Whether each side copies by itself; else the far one serves requests.
    bool is_direct = false;
    std::string reasons{};
};

/// The way that blocks of a plan take: docs/p2p.md has them all.
[[nodiscard]] runtime::SessionPath route_of(const Route& route, const Plan& plan);

}  // namespace pccl::p2p
