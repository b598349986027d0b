// SPDX-License-Identifier: Apache-2.0

// Sockets of a link that show whether the peer is there: they carry nothing but a close reason.
//
// A link has one for each of its paths. The peer is gone once it has closed one of them, or all of
// them are silent.
//
// Its kernel answers for a host, not for a process: a rank that is stopped, or reads late, is not
// lost. Data streams cannot show that, because a full stream looks like a dead one.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"

namespace pccl::transport {

class PeerWatch {
   public:
    explicit PeerWatch(const CloseContext& close_context) : close_context_(close_context) {}
    PeerWatch(const CloseContext& close_context, WatchedSocket socket) : PeerWatch(close_context) {
        use(0, std::move(socket));
    }

    /// Watches `socket` from now on, in place of an earlier one of that path.
    void use(std::size_t path, WatchedSocket socket);
    /// Returns whether the socket of a path is silent; false without one.
    [[nodiscard]] bool is_silent(std::size_t path) const {
        return path < paths_.size() && paths_[path].close_reason.is_silent();
    }
    /// Checks the peer now and then; to be called when a stream had nothing to do. Returns why the
    /// peer is gone.
    Status look_idle();
    Status look();  // now
    /// Returns whether the peer's whole host fell silent.
    [[nodiscard]] bool is_silent() const { return is_silent_; }
    /// Explains a broken stream: returns ok until the reason has arrived, which takes a moment when
    /// the close reason comes later than the end of the stream, then the error.
    Status explain(const Status& fault);
    /// Returns why the peer is gone (`gone`, of look()) once no earlier bytes of it can arrive: the
    /// streams are drained, its host is silent, or a moment has passed. Otherwise returns ok.
    Status settled(const Status& gone, const std::function<bool()>& is_drained);
    /// Ends the link: the peer receives `reason`.
    void close(const Status& reason);

   private:
    struct WatchedPath {
        CloseReasonReceiver close_reason;
        std::optional<WatchedSocket> socket{};
    };

    CloseContext close_context_;
    std::vector<WatchedPath> paths_;
    bool is_silent_ = false;
    int idle_ = 0;
    TimePoint looked_{};
    TimePoint broken_{};
    TimePoint gone_{};
};

}  // namespace pccl::transport
