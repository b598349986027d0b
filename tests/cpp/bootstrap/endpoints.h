// SPDX-License-Identifier: Apache-2.0

// Endpoints of ranks that only their number and their host tell apart.
#pragma once

#include <string>

#include "csrc/bootstrap/endpoint.h"

namespace pccl::bootstrap {

inline Endpoint endpoint(Rank rank, const std::string& host = "node7") {
    Endpoint made;
    made.rank = rank;
    made.host = host;
    return made;
}

}  // namespace pccl::bootstrap
