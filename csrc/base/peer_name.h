// SPDX-License-Identifier: Apache-2.0

// Names of peers in messages.
#pragma once

#include <string>

#include "csrc/base/ids.h"
#include "csrc/base/text.h"

namespace pccl {

/// Returns "rank 3"; "the peer" where processes have no ranks (sessions of p2p).
inline std::string peer_name(Rank rank) {
    return rank == kNoRank ? std::string("the peer") : concat("rank ", rank);
}

}  // namespace pccl
