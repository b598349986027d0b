// SPDX-License-Identifier: Apache-2.0

// SSH subsystem of another host as a stream of bytes, by libssh: with keys only, and a pinned host
// key.
//
// The library is opened at its first use, since nothing else needs it. It reads neither the user's
// configuration nor files of known hosts, uses no agent and prompts for nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

struct SshArgs {
    std::string host;  // for messages
    std::string user;
    std::string key_file;  // a private key without a passphrase, which no other user can read
    /// "SHA256:" and 43 characters, as ssh-keygen -l prints them.
    std::string host_key;
    /// Accepts any host key: for laboratories.
    bool accepts_any_host_key = false;
    std::string subsystem = "netconf";
};

/// Returns whether `text` is a fingerprint of a host key in the form of SshArgs.
[[nodiscard]] PCCL_API bool is_fingerprint(std::string_view text);

/// Channel whose calls do not block. One thread at a time. Errors: kMismatch where the host's key
/// differs from the pinned one, before any proof is sent to it; kInvalidArgument where it refuses
/// user and key, or the key cannot be read; kUnsupported where it has no such subsystem, or libssh
/// is not installed here; kPeerLost for all others.
class PCCL_API SshChannel {
   public:
    /// Starts on `socket`, which is connected to the host.
    [[nodiscard]] static Result<std::unique_ptr<SshChannel>> start(UniqueFd socket, SshArgs args);
    virtual ~SshChannel() = default;

    /// Continues towards the subsystem; true once it is open.
    [[nodiscard]] virtual Result<bool> connect_step() = 0;
    /// Writes or reads some bytes and returns their number; 0 for none now.
    [[nodiscard]] virtual Result<std::size_t> write_some(std::string_view bytes) = 0;
    [[nodiscard]] virtual Result<std::size_t> read_some(std::span<char> into) = 0;
    /// Returns the socket; wants_output() returns whether there is data to be written to it.
    [[nodiscard]] virtual int fd() const = 0;
    [[nodiscard]] virtual bool wants_output() const = 0;
    /// Returns the host key's fingerprint; empty before it is received.
    [[nodiscard]] virtual const std::string& host_key() const = 0;
};

}  // namespace pccl::sys
