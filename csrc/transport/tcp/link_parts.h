// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/peer_watch.h"
#include "csrc/transport/tcp/stripes.h"

namespace pccl::transport::tcp {

/// Parts of both ends of a link. The analyzer does not follow a Result that was checked.
struct LinkParts {  // NOLINT(clang-analyzer-core.uninitialized.Assign)
    Rank peer = kNoRank;
    std::string peer_name;  // "rank 3 at 10.0.0.5:4433", for messages
    std::vector<Stripes> channels;
    PeerWatch watch;
};

}  // namespace pccl::transport::tcp
