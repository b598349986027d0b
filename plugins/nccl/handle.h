// SPDX-License-Identifier: Apache-2.0

// The 128 bytes by which a sender finds a listening communicator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/abi/net_plugin/common.h"
#include "csrc/base/ids.h"
#include "csrc/sys/socket/address.h"
#include "csrc/transport/control/introduction.h"

namespace pccl::nccl {

using HandleBytes = std::array<std::byte, abi::net_plugin::kHandleBytes>;

struct Handle {
    transport::GroupId id{};
    std::array<std::uint8_t, 8> key{};  // proven where the job has no secret of its own
    bool needs_secret = false;          // PCCL_SECRET_FILE is set at the listening side
    Rank rank = kNoRank;                // of the listening process, if it is known
    std::vector<sys::Address> addresses{};

    /// Leaves out the last addresses where they do not fit: 13 of IPv4 do, or 4 of IPv6.
    [[nodiscard]] HandleBytes encode() const;
    /// Reads any bytes; kInvalidArgument where they are no handle.
    static Result<Handle> decode(std::span<const std::byte, sizeof(HandleBytes)> bytes);
    /// Returns the secret that both ends of a connection prove: that of PCCL_SECRET_FILE, or the
    /// key. kMismatch where only one side has set that variable.
    [[nodiscard]] Result<transport::Secret> secret() const;
};

/// Number of a connection attempt, which the plug-in keeps in the handle between two calls of
/// connect; 0: none.
[[nodiscard]] std::uint64_t attempt_in(const void* handle);
void set_attempt(void* handle, std::uint64_t attempt);

}  // namespace pccl::nccl
