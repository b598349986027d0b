// SPDX-License-Identifier: Apache-2.0

// Error with context for users.
#pragma once

#include <string_view>

#include <pccl/status.h>
#include "csrc/runtime/peer_directory.h"

namespace pccl::comm {

/// Adds to `cause` the group, `operation` unless empty, the process of the blamed rank, and advice.
[[nodiscard]] Status explained(const Status& cause, const runtime::PeerDirectory& peers,
                               std::string_view operation = {});

}  // namespace pccl::comm
