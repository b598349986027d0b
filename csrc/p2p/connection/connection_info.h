// SPDX-License-Identifier: Apache-2.0

// Information that a session publishes so that others can connect to it.
#pragma once

#include <string>
#include <string_view>

#include <pccl/memory.h>
#include <pccl/status.h>
#include "csrc/abi/memory.h"
#include "csrc/base/ids.h"
#include "csrc/transport/control/introduction.h"
#include "csrc/transport/peer_address.h"

namespace pccl::p2p {

/// Address and secret of a session. Any process that has them can connect.
struct PCCL_API ConnectionInfo {
    static constexpr std::size_t kLongest = 8 * kKiB;

    SessionId id;
    PeerProcess process;         // for error messages
    transport::GroupId group{};  // the session's key in its process
    transport::Secret secret{};  // each connection proves it
    transport::PeerAddress address;
    /// A registered word of the session. Peers test with it whether they reach the session's
    /// memory.
    abi::MemoryDescriptor probe{};

    /// Returns at most kLongest bytes. Equal infos give equal bytes.
    [[nodiscard]] std::string serialise() const;
    /// Parses untrusted bytes. Returns kInvalidArgument with the field or the place, kUnsupported
    /// for another version.
    static Result<ConnectionInfo> deserialise(std::string_view bytes);
    /// Returns, for example, "session \"decode-3\" (process 812 on node7)".
    [[nodiscard]] std::string to_string() const;
};

}  // namespace pccl::p2p
