// Echoes (sys/socket/echo.h), by which a process times the way to another of its group: a query
// whose purpose says so keeps its connection, and is answered by them.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "csrc/base/background_thread.h"
#include "csrc/base/clock.h"
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

[[nodiscard]] bool asks_for_echoes(const Introduction& introduction);

/// A connection at whose other end echoes are answered, once others have had theirs; errors as of
/// connect_authenticated().
[[nodiscard]] PCCL_API Result<UniqueFd> connect_for_echoes(const ConnectArgs& args,
                                                           const LinkRequest& request,
                                                           Deadline deadline);

/// Answers on one connection after the other, so that none disturbs another.
class PCCL_API EchoServer {
   public:
    /// Of one connection, so that nobody keeps others waiting, or a core busy.
    static constexpr Duration kLongest = std::chrono::milliseconds(30);
    static constexpr std::size_t kMostWaiting = 256;

    EchoServer() = default;
    ~EchoServer();
    EchoServer(const EchoServer&) = delete;
    EchoServer& operator=(const EchoServer&) = delete;

    /// Takes a connection; lets it go where too many wait. Does not wait itself.
    void take(UniqueFd connection);

   private:
    void serve();
    UniqueFd next();

    std::mutex mutex_;  // guards what follows
    std::deque<UniqueFd> waiting_;
    bool is_serving_ = false;
    bool is_over_ = false;
    std::unique_ptr<BackgroundThread> thread_;  // while there are connections; last
};

}  // namespace pccl::transport
