// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/paths.h"

#include <algorithm>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "plugins/nccl/nccl_log.h"

namespace pccl::nccl {

std::string Peer::name() const {
    return host.empty() ? peer_name(rank) : concat(peer_name(rank), " on ", host);
}

std::string PathEnds::name() const {
    return concat(near_interface, " ", near.ip_text(), " to ", far_interface,
                  far_interface.empty() ? "" : " ", far.ip_text());
}

std::size_t Paths::alive() const {
    return static_cast<std::size_t>(std::ranges::count_if(paths_, &Path::is_alive));
}

Status Paths::lose(std::size_t path, const Status& why) {
    Path& lost = paths_[path];
    lost.socket.reset();
    lost.fault = why;
    if (alive() > 0) {
        nccl_log().warn("the path from ", lost.ends.name(), " to ", peer_.name(),
                        " is lost: ", why.message(), "; the other paths carry its data");
        return Status::ok();
    }
    const auto fault_of = [](const Path& each) {
        return concat(each.ends.name(), ": ", each.fault.message());
    };
    return Status::peer_lost(
        peer_.rank, concat(peer_.name(), " is lost (", some_of(paths_, kMostPaths, fault_of), ")"));
}

}  // namespace pccl::nccl
