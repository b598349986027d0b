// SPDX-License-Identifier: Apache-2.0

// Echoes (sys/socket/echo.h), by which a process measures the latency to another process of its
// group: a query with that purpose keeps its connection, and the far end answers with echoes.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include <pccl/deadline.h>
#include "csrc/base/threads/background_thread.h"
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

[[nodiscard]] bool requests_echoes(const Introduction& introduction);

/// Returns a connection whose other end answers echoes, after earlier connections had theirs;
/// errors as of connect_authenticated().
[[nodiscard]] PCCL_API Result<UniqueFd> connect_for_echoes(const ConnectArgs& args,
                                                           const LinkRequest& request,
                                                           Deadline deadline);

/// Server that answers on one connection after the other, so that none disturbs another.
class PCCL_API EchoServer {
   public:
    /// Limit of one connection, so that it neither delays others nor keeps a core busy.
    static constexpr Duration kLongest = std::chrono::milliseconds(30);
    static constexpr std::size_t kMostWaiting = 256;

    EchoServer() = default;
    ~EchoServer();
    EchoServer(const EchoServer&) = delete;
    EchoServer& operator=(const EchoServer&) = delete;

    /// Takes a connection; closes it where too many wait. Does not block.
    void accept(UniqueFd connection);

   private:
    void serve();
    UniqueFd next();

    std::mutex mutex_;  // guards the members below
    std::deque<UniqueFd> waiting_;
    bool is_serving_ = false;
    bool is_over_ = false;
    std::unique_ptr<BackgroundThread> thread_;  // set while there are connections; declared last
};

}  // namespace pccl::transport
