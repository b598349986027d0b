#include "csrc/transport/control/sides.h"

#include <algorithm>

#include "csrc/base/text.h"

namespace pccl::transport {
namespace {

Status look_at(const sys::Interface& own) {
    // A cable without a signal may have been cut at its other end, so it proves nothing.
    PCCL_ASSIGN_OR_RETURN(const auto interfaces, sys::list_interfaces());
    const auto is_up = [&own](const sys::Interface& i) {
        return i.index == own.index && i.enabled;
    };
    if (std::ranges::any_of(interfaces, is_up)) return Status::ok();
    return Status::unavailable(concat("the interface ", own.name, " of this host is switched off"));
}

}  // namespace

Status NetworkSide::reaches(const std::string& peer_host, const sys::Address& address) const {
    if (peer_host == host) return Status::ok();
    if (!address.is_loopback()) return look_at(interface);
    return Status::unavailable(
        concat("the peer listens at ", address.to_string(), " of another host"));
}

sys::Address NetworkSide::from_here(const sys::Address& address) const {
    return address.is_link_local() ? address.with_scope(interface.index) : address;
}

}  // namespace pccl::transport
