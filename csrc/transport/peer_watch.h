// SPDX-License-Identifier: Apache-2.0

// Socket of a link that shows whether the peer is there: it carries nothing but a close reason.
//
// Its kernel answers for a host, not for a process: a rank that is stopped, or reads late, is not
// lost. Data streams cannot show that, because a full stream looks like a dead one.
#pragma once

#include <utility>

#include <pccl/deadline.h>
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"

namespace pccl::transport {

class PeerWatch {
   public:
    PeerWatch(const CloseContext& close_context, WatchedSocket socket)
        : close_reason_(close_context), socket_(std::move(socket)) {}

    /// Checks the peer now and then; to be called when a stream had nothing to do. Returns why the
    /// peer is gone.
    Status look_idle();
    Status look() { return close_reason_.receive(socket_.fd()); }  // now
    /// Returns whether the peer's whole host fell silent.
    [[nodiscard]] bool is_silent() const { return close_reason_.is_silent(); }
    /// Explains a broken stream: returns ok until the reason has arrived, which takes a moment when
    /// the close reason comes later than the end of the stream, then the error.
    Status explain(const Status& fault);
    /// Ends the link: the peer receives `reason`.
    void close(const Status& reason) { send_close_reason(socket_.fd(), reason); }

   private:
    CloseReasonReceiver close_reason_;
    WatchedSocket socket_;
    int idle_ = 0;
    TimePoint looked_{};
    TimePoint broken_{};
};

}  // namespace pccl::transport
