// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/transport.h"

#include "csrc/transport/region.h"

namespace pccl::transport {

void LinkReceiver::accepted_region(const LinkRequest&, std::unique_ptr<Region>) {
    refused(to_string(TransportKind::kShm), Status::unsupported("regions are not taken here"));
}

void LinkReceiver::fell_short(const LinkRequest&, TransportKind kind, const Status& why) {
    refused(to_string(kind), why);
}

}  // namespace pccl::transport
