// SPDX-License-Identifier: Apache-2.0

// How both ends of a link connect their queue pairs.
#pragma once

#include <cstdint>
#include <string_view>

#include <pccl/status.h>

namespace pccl::transport::verbs {

/// What an end wants, or both have agreed on.
enum class ConnectWay : std::uint8_t {
    kAuto,    // either; direct where both leave it open
    kDirect,  // by the numbers that the ends have exchanged
    kRdmaCm,  // by the kernel's connection manager
};

/// Returns "auto", "direct" or "rdma_cm", and back; kInvalidArgument for other texts.
[[nodiscard]] const char* to_string(ConnectWay way);
[[nodiscard]] Result<ConnectWay> parse_connect_way(std::string_view text);

/// Returns the way of a link between ends that want these: not kAuto. kUnavailable where they
/// exclude each other.
[[nodiscard]] Result<ConnectWay> agree(ConnectWay here, ConnectWay peer);

}  // namespace pccl::transport::verbs
