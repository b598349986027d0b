// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/over_links.h"

#include <utility>

#include "csrc/transport/rma/bundle.h"
#include "csrc/transport/rma/stream_link.h"

namespace pccl::transport {

Result<std::unique_ptr<RmaLink>> RmaOverLinks::connect(RmaStreams streams) {
    return std::unique_ptr<RmaLink>(std::make_unique<RmaStreamLink>(std::move(streams), registry_));
}

std::unique_ptr<RmaBundle> RmaOverLinks::connect_bundle(RmaStreams streams,
                                                        const RmaHelpers& helpers) {
    return std::make_unique<RmaBundle>(std::move(streams), registry_, helpers);
}

}  // namespace pccl::transport
