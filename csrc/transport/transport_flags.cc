// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/transport_flags.h"

#include <algorithm>
#include <array>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"

namespace pccl::transport {
namespace {

constexpr std::array<std::string_view, kTransportKinds> kNames{"loopback", "shm",    "tcp",
                                                               "verbs",    "nvlink", "netplugin"};

}  // namespace

std::string_view to_string(TransportKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

Result<TransportFlags> TransportFlags::parse(std::string_view text) {
    TransportFlags flags;
    while (!text.empty()) {
        const std::string_view name = next_item(text);
        const auto found = std::find(kNames.begin(), kNames.end(), name);
        if (found == kNames.end()) {
            return Status::invalid_argument(
                concat("\"", name, "\" is no transport; there are ", all().to_string()));
        }
        flags = flags | static_cast<TransportKind>(found - kNames.begin());
    }
    return flags;
}

std::string TransportFlags::to_string() const {
    std::string text;
    for (int i = 0; i < kTransportKinds; ++i) {
        const auto kind = static_cast<TransportKind>(i);
        if (has(kind)) text += concat(text.empty() ? "" : ",", transport::to_string(kind));
    }
    return text;
}

}  // namespace pccl::transport
