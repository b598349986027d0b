#include "csrc/p2p/call.h"

#include "csrc/base/text.h"
#include "csrc/p2p/connection.h"
#include "csrc/p2p/inquiries.h"
#include "csrc/p2p/session_core.h"

namespace pccl::p2p {

Result<bool> Call::advance(SessionCore& core) {
    for (;;) {
        if (connection_ == nullptr) {
            PCCL_ASSIGN_OR_RETURN(Way way, core.connection_to(peer_));
            connection_ = std::move(way.connection);
            is_own_ = way.is_new;
        }
        if (is_own_ && connection_->is_lost()) return why_not_made();
        if (connection_->is_usable()) return is_answered(core);
        connection_.reset();
        question_.reset();
    }
}

Result<bool> Call::is_answered(SessionCore& core) {
    if (is_own_ || !connection_->is_whole()) return connection_->is_whole();
    if (question_ == nullptr) {
        PCCL_ASSIGN_OR_RETURN(question_, core.inquiries().hail(connection_));
    }
    // The loss of the connection answers it as well.
    return question_->is_answered() && connection_->is_usable();
}

Status Call::why_not_made() const {
    Status why = connection_->why_lost();
    if (!connection_->was_late()) return why;
    return Status::timeout(why.message(), why.peer()).with_process(why.process());
}

Status Call::late() const {
    const ConnectionInfo& peer = connection_->peer();
    const std::string_view what = question_ == nullptr
                                      ? " is not connected in time"
                                      : " is connected, but has not answered in time";
    return Status::timeout(concat(peer.to_string(), what)).with_process(peer.process);
}

}  // namespace pccl::p2p
