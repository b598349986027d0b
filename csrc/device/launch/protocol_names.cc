#include "csrc/device/launch/protocol_names.h"

#include <algorithm>
#include <array>

#include "csrc/base/text.h"

namespace pccl::device {
namespace {

using kernels::Protocol;

constexpr std::array kProtocols = {Protocol::kLL, Protocol::kDirect, Protocol::kStaggered,
                                   Protocol::kCopyEngine, Protocol::kLL128};

}  // namespace

std::string_view name_of(Protocol protocol) {
    constexpr std::array<std::string_view, kProtocols.size()> kNames = {"ll", "direct", "staggered",
                                                                        "copy_engine", "ll128"};
    return kNames.at(static_cast<std::size_t>(protocol));
}

Result<Protocol> protocol_named(std::string_view name) {
    const auto* const found = std::ranges::find(kProtocols, name, name_of);
    if (found != kProtocols.end()) return *found;
    return Status::invalid_argument(
        concat("'", name, "' is no protocol: ll, direct, staggered, copy_engine, ll128"));
}

}  // namespace pccl::device
