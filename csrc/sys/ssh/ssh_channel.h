// An SSH subsystem of another host as a stream of bytes, by libssh: keys only, the host's pinned.
//
// The library is opened when first used: nothing else needs it. Neither the user's configuration
// nor files of known hosts are read, no agent is asked, nobody is prompted.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

struct SshArgs {
    std::string host;  // for messages
    std::string user;
    std::string key_file;  // a private key without a passphrase, which no other user can read
    /// "SHA256:" and 43 characters, as ssh-keygen -l prints them.
    std::string host_key;
    /// Any host key will do: for laboratories.
    bool accepts_any_host_key = false;
    std::string subsystem = "netconf";
};

/// Whether `text` is a fingerprint of a host key as SshArgs has it.
[[nodiscard]] PCCL_API bool is_fingerprint(std::string_view text);

/// Nothing blocks. Errors: kMismatch where the host shows another key than the one that is pinned,
/// before anything is proven to it; kInvalidArgument where it refuses user and key, or the key
/// cannot be read; kUnsupported where it has no such subsystem, or libssh is not installed here;
/// kPeerLost for all others. One thread at a time.
class PCCL_API SshChannel {
   public:
    /// `socket` is connected to the host.
    [[nodiscard]] static Result<std::unique_ptr<SshChannel>> start(UniqueFd socket, SshArgs args);
    virtual ~SshChannel() = default;

    /// Carries on towards the subsystem; true once it is there.
    [[nodiscard]] virtual Result<bool> connect_step() = 0;
    /// How many bytes were taken or given; 0 for none now.
    [[nodiscard]] virtual Result<std::size_t> write_some(std::string_view bytes) = 0;
    [[nodiscard]] virtual Result<std::size_t> read_some(std::span<char> into) = 0;
    /// The socket, and whether there is something to be written to it.
    [[nodiscard]] virtual int fd() const = 0;
    [[nodiscard]] virtual bool wants_output() const = 0;
    /// The fingerprint that the host showed; empty before.
    [[nodiscard]] virtual const std::string& host_key() const = 0;
};

}  // namespace pccl::sys
