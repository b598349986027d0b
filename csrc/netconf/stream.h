// Bytes both ways, as a NETCONF session needs them: SSH is one, a test's pipe another.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::netconf {

/// Nothing blocks, and errors stick. One thread at a time.
///
/// A code says what failed: kUnavailable that nobody listens, kMismatch that the host key is not
/// the one that was pinned, kInvalidArgument that the key or user was refused, kPeerLost that the
/// connection broke or made no sense, kUnsupported that a library is missing here.
class PCCL_API ByteStream {
   public:
    virtual ~ByteStream() = default;

    /// True once bytes can be moved.
    virtual Result<bool> connect_step() = 0;
    /// How many of `bytes` were taken; 0 when none can be now.
    virtual Result<std::size_t> write_some(std::string_view bytes) = 0;
    /// 0 when none are there yet.
    virtual Result<std::size_t> read_some(std::span<char> into) = 0;
    /// What ends the wait for more; fd -1: looking again, after a millisecond.
    [[nodiscard]] virtual sys::Interest interest() const = 0;
    /// What connecting waits for, where that is not the device itself: "the name service, for the
    /// address of ..."; empty: nothing else.
    [[nodiscard]] virtual std::string awaited() const { return {}; }
};

}  // namespace pccl::netconf
