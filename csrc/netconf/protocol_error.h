// What a peer sends that is not NETCONF.
#pragma once

#include <string_view>

#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/base/text.h"

namespace pccl::netconf {

inline Status protocol_error(std::string_view what) {
    return Status::peer_lost(kNoRank, concat("no NETCONF: ", what));
}

}  // namespace pccl::netconf
