// SPDX-License-Identifier: Apache-2.0

// Bidirectional byte stream for a NETCONF session: SSH is one, a test's pipe another.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/sys/socket/socket.h"

namespace pccl::netconf {

/// Stream interface. Nothing blocks, and errors are sticky. One thread at a time.
///
/// Errors by code: kUnavailable (no process listens), kMismatch (the host key is not the pinned
/// one), kInvalidArgument (the server refused the key or user), kPeerLost (the connection broke or
/// was malformed), kUnsupported (a library is missing here).
class PCCL_API ByteStream {
   public:
    virtual ~ByteStream() = default;

    /// Returns true once bytes can be moved.
    virtual Result<bool> connect_step() = 0;
    /// Returns how many of `bytes` were taken; 0 when none can be now.
    virtual Result<std::size_t> write_some(std::string_view bytes) = 0;
    /// Returns how many bytes were read; 0 when none are there yet.
    virtual Result<std::size_t> read_some(std::span<char> into) = 0;
    /// Returns the event that ends the wait for more; fd -1: check again after a millisecond.
    [[nodiscard]] virtual sys::Interest interest() const = 0;
    /// Returns the pending requirement of the connection, apart from the device itself: "the name
    /// service, for the address of ..."; empty: none.
    [[nodiscard]] virtual std::string awaited() const { return {}; }
};

}  // namespace pccl::netconf
