// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/control_plane.h"

#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/transport/control/close_reason.h"

namespace pccl::transport {

Status may_share_memory(const ControlAddress& here, const ControlAddress& there) {
    if (here.host != there.host || here.kernel != there.kernel)
        return Status::unavailable("the peer is on another host or in another network namespace");
    if (here.user == there.user) return Status::ok();
    return Status::unavailable(concat("the peer runs as user ", there.user,
                                      ", this process as user ", here.user,
                                      ", and users share no memory"));
}

std::optional<std::string> take_up(Arrival& arrival, ControlHost& host) {
    const Introduction& from = arrival.introduction;
    switch (from.service) {
        case Service::kQuery:
            return host.answer(from.request);
        case Service::kStatus:
            return host.status(value_in<StatusQuestion>(from.purpose));
        case Service::kNotice:
            host.noticed(from.request, reason_of(value_in<Notice>(from.purpose)));
            return std::nullopt;
        case Service::kLink:
        case Service::kRegion:
            break;
    }
    host.arrived(std::move(arrival));
    return std::nullopt;
}

Introduction notice_for(const LinkRequest& request, const Status& reason) {
    return {
        .request = request, .service = Service::kNotice, .purpose = purpose_of(notice_of(reason))};
}

}  // namespace pccl::transport
