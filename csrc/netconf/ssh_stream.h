// SPDX-License-Identifier: Apache-2.0

// Stream to real NETCONF devices: SSH over TCP (RFC 6242).
#pragma once

#include <memory>
#include <string>

#include "csrc/netconf/stream.h"
#include "csrc/sys/socket/name_lookup.h"
#include "csrc/sys/ssh/ssh_channel.h"

namespace pccl::netconf {

/// Makes a stream to the first address of a lookup, for which it does not block. Its errors begin
/// with "<host>: ".
[[nodiscard]] PCCL_API std::unique_ptr<ByteStream> make_ssh_stream(sys::NameLookup lookup,
                                                                   sys::SshArgs args);

}  // namespace pccl::netconf
