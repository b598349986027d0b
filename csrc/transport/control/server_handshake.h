// SPDX-License-Identifier: Apache-2.0

// One handshake on the accepting side.
#pragma once

#include <pccl/deadline.h>
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/handshake_host.h"
#include "csrc/transport/control/handshake_messages.h"
#include "csrc/transport/control/introduction.h"

namespace pccl::transport {

class ServerHandshake {
   public:
    /// Takes the socket; `secrets` outlive this.
    ServerHandshake(UniqueFd fd, const OtherSecrets& secrets, TimePoint begun);

    /// Returns true when the client has proven itself and was sent its acceptance.
    Result<bool> advance(HandshakeHost& host);
    /// Makes the client begin again with a new connection: this one ends.
    void put_off() const;

    [[nodiscard]] Introduction introduction() const;
    [[nodiscard]] TimePoint begun() const { return begun_; }
    /// Returns true until the whole first message is here.
    [[nodiscard]] bool is_silent() const { return !received_hello_; }
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] UniqueFd take_socket() { return std::move(fd_); }

   private:
    Status answer(HandshakeHost& host);
    Status judge(HandshakeHost& host);
    [[nodiscard]] bool is_of_onlooker() const;

    const OtherSecrets& secrets_;
    UniqueFd fd_;
    TimePoint begun_;
    bool received_hello_ = false;
    bool is_known_ = false;
    Secret secret_{};
    handshake::Transcript transcript_;
    handshake::Incoming<handshake::ClientHello> hello_;
    handshake::Incoming<handshake::ClientProof> client_proof_;
};

}  // namespace pccl::transport
