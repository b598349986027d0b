// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/connect_way.h"

#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {

const char* to_string(ConnectWay way) {
    switch (way) {
        case ConnectWay::kAuto:
            return "auto";
        case ConnectWay::kDirect:
            return "direct";
        case ConnectWay::kRdmaCm:
            return "rdma_cm";
    }
    return "unknown";
}

Result<ConnectWay> parse_connect_way(std::string_view text) {
    for (const ConnectWay way : {ConnectWay::kAuto, ConnectWay::kDirect, ConnectWay::kRdmaCm})
        if (text == to_string(way)) return way;
    return Status::invalid_argument(
        concat("\"", text, "\" is no way to connect; use auto, direct or rdma_cm"));
}

Result<ConnectWay> agree(ConnectWay here, ConnectWay peer) {
    if (here == ConnectWay::kAuto && peer == ConnectWay::kAuto) return ConnectWay::kDirect;
    if (here == ConnectWay::kAuto || here == peer) return peer;
    if (peer == ConnectWay::kAuto) return here;
    return Status::unavailable(
        concat("queue pairs are connected by ", to_string(here), " here, and by ", to_string(peer),
               " at the peer; set PCCL_IB_CONNECT alike on both hosts (iWARP "
               "devices need rdma_cm)"));
}

}  // namespace pccl::transport::verbs
