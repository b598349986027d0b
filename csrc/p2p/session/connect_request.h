// SPDX-License-Identifier: Apache-2.0

// A request that makes sure that a peer is connected.
//
// The peer may have ended an existing connection although its notice has not arrived yet. Such a
// connection is therefore verified with a ping, and replaced if it is lost. A connection that was
// begun for this request needs no ping: its handshake proves that the peer is there, and its loss
// proves the opposite.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <pccl/status.h>

namespace pccl::p2p {

class Connection;
class Inquiry;
class SessionCore;

/// Request of one Session::connect() call. Not thread-safe.
class PCCL_API ConnectRequest {
   public:
    explicit ConnectRequest(std::string peer) : peer_(std::move(peer)) {}

    /// Returns true once the peer is connected, false before. Errors are those of
    /// Session::connect(); kTimeout means that the connection was not made within connect_timeout,
    /// and is final.
    Result<bool> advance(SessionCore& core);
    /// Returns kTimeout with the step that the peer has not done.
    [[nodiscard]] Status timeout_error() const;

   private:
    Result<bool> is_answered(SessionCore& core);
    [[nodiscard]] Status why_not_made() const;

    const std::string peer_;
    std::shared_ptr<Connection> connection_;
    bool is_own_ = false;                      // the connection was begun for this request
    std::shared_ptr<const Inquiry> question_;  // ping on a connection that was not
};

}  // namespace pccl::p2p
