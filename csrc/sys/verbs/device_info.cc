// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/verbs/device_info.h"

#include <arpa/inet.h>

#include <algorithm>

namespace pccl::sys::verbs {

const char* to_string(GidType type) {
    switch (type) {
        case GidType::kInfiniband:
            return "IB";
        case GidType::kRoceV1:
            return "RoCE v1";
        case GidType::kRoceV2:
            return "RoCE v2";
    }
    return "unknown";
}

bool GidEntry::is_ipv4() const {
    const bool is_zero = std::all_of(gid.begin(), gid.begin() + 10, [](auto b) { return b == 0; });
    return is_zero && gid[10] == 0xff && gid[11] == 0xff;
}

bool GidEntry::is_link_local() const { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

std::string GidEntry::address() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (is_ipv4())
        ::inet_ntop(AF_INET, gid.data() + 12, text.data(), text.size());
    else
        ::inet_ntop(AF_INET6, gid.data(), text.data(), text.size());
    return text.data();
}

const PortInfo* DeviceInfo::port(int number) const {
    const auto found = std::ranges::find(ports, number, &PortInfo::number);
    return found == ports.end() ? nullptr : &*found;
}

}  // namespace pccl::sys::verbs
