// How messages name whom they are about.
#pragma once

#include <string>

#include "csrc/base/ids.h"
#include "csrc/base/text.h"

namespace pccl {

/// "rank 3"; "the peer" where ranks are not what tells processes apart (sessions of p2p).
inline std::string peer_name(Rank rank) {
    return rank == kNoRank ? std::string("the peer") : concat("rank ", rank);
}

}  // namespace pccl
