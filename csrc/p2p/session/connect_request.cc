// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/connect_request.h"

#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/connection.h"
#include "csrc/p2p/messages/inquiries.h"
#include "csrc/p2p/session/session_core.h"

namespace pccl::p2p {

Result<bool> ConnectRequest::advance(SessionCore& core) {
    for (;;) {
        if (connection_ == nullptr) {
            PCCL_ASSIGN_OR_RETURN(ChosenConnection chosen, core.connection_to(peer_));
            connection_ = std::move(chosen.connection);
            is_own_ = chosen.is_new;
        }
        if (is_own_ && connection_->is_lost()) return why_not_made();
        if (connection_->is_usable()) return is_answered(core);
        connection_.reset();
        question_.reset();
    }
}

Result<bool> ConnectRequest::is_answered(SessionCore& core) {
    if (is_own_ || !connection_->is_whole()) return connection_->is_whole();
    if (question_ == nullptr) {
        PCCL_ASSIGN_OR_RETURN(question_, core.inquiries().ping(connection_));
    }
    // A lost connection completes the ping as well.
    return question_->is_answered() && connection_->is_usable();
}

Status ConnectRequest::why_not_made() const {
    Status why = connection_->why_lost();
    if (!connection_->timed_out()) return why;
    return Status::timeout(why.message(), why.peer()).with_process(why.process());
}

Status ConnectRequest::timeout_error() const {
    const ConnectionInfo& peer = connection_->peer();
    const std::string_view what = question_ == nullptr
                                      ? " is not connected in time"
                                      : " is connected, but has not answered in time";
    return Status::timeout(concat(peer.to_string(), what)).with_process(peer.process);
}

}  // namespace pccl::p2p
