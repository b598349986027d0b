// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/explained.h"

#include <string>

#include "csrc/base/text/text.h"

namespace pccl::comm {
namespace {

std::string_view advice(const Status& cause) {
    switch (cause.code()) {
        case StatusCode::kPeerLost:
            return "; this group is over: go on without that rank (pccl.shrink), or restart the "
                   "job";
        case StatusCode::kTimeout:
            return "; this group is over: see what that rank does (pccl debug), or allow more time";
        case StatusCode::kMismatch:
            return "; this group is over: mend the program, and make a new group";
        default:
            return "";
    }
}

}  // namespace

Status explained(const Status& cause, const runtime::PeerDirectory& peers,
                 std::string_view operation) {
    std::string text = concat("group ", peers.group_name(), operation.empty() ? "" : ", ",
                              operation, ": ", cause.message());
    Status status = cause;
    const Rank peer = cause.peer();
    if (peer >= 0 && peer < peers.size() && peer != peers.rank() && peers.knows_peers()) {
        const bootstrap::Endpoint& endpoint = peers.endpoint(peer);
        text += concat(" (rank ", peer, " is process ", endpoint.pid, " on ", endpoint.host, ")");
        status = status.with_process({.host = endpoint.host, .pid = endpoint.pid});
    }
    return status.with_message(concat(text, advice(cause)));
}

}  // namespace pccl::comm
