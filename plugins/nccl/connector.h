// SPDX-License-Identifier: Apache-2.0

// Connection attempt of a sender: one socket for each path.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/transport/control/handshake.h"
#include "plugins/nccl/acceptor.h"
#include "plugins/nccl/handle.h"
#include "plugins/nccl/network_device.h"
#include "plugins/nccl/paths.h"
#include "plugins/nccl/send_comm.h"

namespace pccl::nccl {

/// Attempt in progress. Paths that fail, or do not answer soon after others have, are left out. One
/// that fails after the choice counts as lost.
class Connector {
   public:
    static Result<std::unique_ptr<Connector>> start(const Handle& handle,
                                                    const NetworkDevice& device, const Self& self);

    /// Returns the communicator once the peer has accepted it; null until then. Errors name the
    /// peer and each path. Does not block.
    Result<std::unique_ptr<SendComm>> advance();

   private:
    struct Attempt {
        Path path;                                             // lost: the attempt has failed
        std::unique_ptr<transport::HandshakeClient> client{};  // until it has succeeded or failed
        bool is_chosen = false;                                // in Begin
        Identity identity{};
        std::size_t received = 0;  // bytes of `identity`
    };

    explicit Connector(const Handle& handle);
    Status open(const Handle& handle, const NetworkDevice& device, const Self& self);
    void advance(Attempt& attempt);
    /// Returns whether the paths of the communicator are known.
    Result<bool> choose();
    [[nodiscard]] Status no_path();
    void send_begin();
    /// Returns the receiver's description from the first path that has brought it; null until then.
    Result<const Identity*> read_identity();
    static void read_identity(Attempt& attempt);
    std::unique_ptr<SendComm> finish(const Identity& identity);
    [[nodiscard]] bool is_any_connected() const;

    Peer peer_;
    const std::vector<sys::Address> addresses_;
    std::vector<Attempt> attempts_;
    Deadline deadline_;
    std::optional<Deadline> grace_;  // for the other paths, once one is there
    bool is_patient_ = false;        // the peer's kernel has answered: more time for its process
    bool has_begun_ = false;
};

}  // namespace pccl::nccl
