// An error as users see it.
#pragma once

#include <string_view>

#include "csrc/base/status.h"
#include "csrc/runtime/peer_directory.h"

namespace pccl::comm {

/// `cause` with the group, `operation` unless empty, the process of the rank that it blames, and
/// what to do next.
[[nodiscard]] Status explained(const Status& cause, const runtime::PeerDirectory& peers,
                               std::string_view operation = {});

}  // namespace pccl::comm
