// SPDX-License-Identifier: Apache-2.0

// Error for a peer that does not follow the NETCONF protocol.
#pragma once

#include <string_view>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/text.h"

namespace pccl::netconf {

inline Status protocol_error(std::string_view what) {
    return Status::peer_lost(kNoRank, concat("no NETCONF: ", what));
}

}  // namespace pccl::netconf
