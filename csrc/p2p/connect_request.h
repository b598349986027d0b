// Making sure that there is a connection to a peer.
//
// One that is here may have ended there, and the news be on their way. So the peer is asked on it,
// and another one is made where it turns out to be lost. One that is begun for this very call was
// answered by the peer, and needs no question: its loss is an answer, too.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "csrc/base/status.h"

namespace pccl::p2p {

class Connection;
class Inquiry;
class SessionCore;

/// Used by one thread at a time.
class PCCL_API ConnectRequest {
   public:
    explicit ConnectRequest(std::string peer) : peer_(std::move(peer)) {}

    /// Whether the peer is connected; false: not yet. Errors as of Session::connect(): kTimeout
    /// where the connection could not be made in connect_timeout, which is an end.
    Result<bool> advance(SessionCore& core);
    /// kTimeout, and what the peer has not done.
    [[nodiscard]] Status timeout_error() const;

   private:
    Result<bool> is_answered(SessionCore& core);
    [[nodiscard]] Status why_not_made() const;

    const std::string peer_;
    std::shared_ptr<Connection> connection_;
    bool is_own_ = false;                      // it was begun for this call
    std::shared_ptr<const Inquiry> question_;  // on one that was not
};

}  // namespace pccl::p2p
