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
    if (near_interface.empty() && far_interface.empty()) return "a path that was not seen";
    return concat(near_interface, " ", near.ip_text(), " to ", far_interface,
                  far_interface.empty() ? "" : " ", far.ip_text());
}

void log_left_out(const Path& path, const Peer& peer) {
    nccl_log().warn("no path from ", path.ends.name(), " to ", peer.name(), ": ",
                    path.fault.message());
}

std::string faults_of(const std::vector<Path>& paths) {
    return some_of(paths, kMostPaths, [](const Path& each) {
        return concat(each.ends.name(), ": ", each.fault.message());
    });
}

std::size_t Paths::alive() const {
    return static_cast<std::size_t>(std::ranges::count_if(paths_, &Path::is_alive));
}

Status Paths::lose(std::size_t path, const Status& why) {
    Path& lost = paths_[path];
    lost.lose(why);
    if (alive() > 0) {
        nccl_log().warn("the path from ", lost.ends.name(), " to ", peer_.name(),
                        " is lost: ", why.message(), "; the other paths carry its data");
        return Status::ok();
    }
    return Status::peer_lost(peer_.rank,
                             concat(peer_.name(), " is lost (", faults_of(paths_), ")"));
}

}  // namespace pccl::nccl
