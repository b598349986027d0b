// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/protocol_names.h"

#include <algorithm>
#include <array>

#include "csrc/base/text.h"

namespace pccl::device {
namespace {

using kernels::Protocol;

constexpr std::array kProtocols = {Protocol::kLL, Protocol::kDirect, Protocol::kStaggered,
                                   Protocol::kCopyEngine, Protocol::kLL128};

constexpr std::array<std::string_view, kProtocols.size()> kWireNames = {"words", "direct", "turns",
                                                                        "engines", "lines"};

}  // namespace

std::string_view name_of(Protocol protocol) {
    constexpr std::array<std::string_view, kProtocols.size()> kNames = {"ll", "direct", "staggered",
                                                                        "copy_engine", "ll128"};
    return kNames.at(static_cast<std::size_t>(protocol));
}

std::string_view wire_name_of(Protocol protocol) {
    return kWireNames.at(static_cast<std::size_t>(protocol));
}

Result<Protocol> protocol_named(std::string_view name) {
    const auto* const found = std::ranges::find_if(kProtocols, [&](Protocol each) {
        return name == name_of(each) || name == wire_name_of(each);
    });
    if (found != kProtocols.end()) return *found;
    return Status::invalid_argument(
        concat("'", name, "' is no protocol: ll, direct, staggered, copy_engine, ll128"));
}

}  // namespace pccl::device
