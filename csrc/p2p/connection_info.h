// What a session hands out so that others can connect to it.
#pragma once

#include <string>
#include <string_view>

#include "csrc/abi/memory.h"
#include "csrc/base/status.h"
#include "csrc/p2p/session_id.h"
#include "csrc/transport/control/identity.h"
#include "csrc/transport/peer_address.h"

namespace pccl::p2p {

/// Whoever has it can connect: it holds the session's secret.
struct PCCL_API ConnectionInfo {
    static constexpr std::size_t kLongest = 8 * kKiB;

    SessionId id;
    PeerProcess process;         // for messages
    transport::GroupId group{};  // by which its process knows the session
    transport::Secret secret{};  // proven by every connection
    transport::PeerAddress address;
    /// A registered word of the session: whether peers reach its memory is tried on this.
    abi::MemoryDescriptor probe{};

    /// The same for the same info; at most kLongest bytes.
    [[nodiscard]] std::string serialise() const;
    /// From bytes of any origin: kInvalidArgument names the field or the place, kUnsupported
    /// another version.
    static Result<ConnectionInfo> deserialise(std::string_view bytes);
    /// "session \"decode-3\" (process 812 on node7)"
    [[nodiscard]] std::string to_string() const;
};

}  // namespace pccl::p2p
