// The server half of TcpStore: a dictionary behind sockets, on a thread of its own.
//
// A client that has not greeted properly, sends nonsense, or sends while its last answer is still
// on the way costs at most two frames of memory, and is dropped with a line in the log.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/background_thread.h"
#include "csrc/base/unique_fd.h"
#include "csrc/comm/rendezvous/dictionary.h"
#include "csrc/comm/rendezvous/tcp_protocol.h"
#include "csrc/sys/socket/address.h"

namespace pccl::comm {

class StoreServer {
   public:
    /// Listens at all of `addresses` (port 0: any free one). Errors: those of sys::listen_on.
    static Result<std::unique_ptr<StoreServer>> start(std::span<const sys::Address> addresses);
    /// Sends what it has answered, for a second at most, and closes all connections.
    ~StoreServer();
    StoreServer(const StoreServer&) = delete;
    StoreServer& operator=(const StoreServer&) = delete;

    /// With the ports that the system chose.
    [[nodiscard]] const std::vector<sys::Address>& addresses() const { return addresses_; }

   private:
    struct Parked {
        std::string key;
        std::uint32_t id = 0;
    };
    struct Connection {
        UniqueFd socket;
        std::string in;
        std::string out;
        bool greeted = false;
        bool writing = false;  // watched for output instead of input
        std::optional<Parked> parked;
    };
    using Connections = std::map<int, Connection>;  // by descriptor

    StoreServer() = default;
    Status listen(const sys::Address& address);
    Status watch(int fd, int action, bool output) const;
    void serve();
    [[nodiscard]] bool is_listener(int fd) const;
    void accept_from(int listener);
    void advance(Connection& connection);
    Status receive(Connection& connection);
    Status greet(Connection& connection);
    Status obey(Connection& connection);
    void execute(Connection& connection, StoreRequest& request);
    void wake_waiters(const std::string& key);
    void unpark(Connection& connection);
    static void answer(Connection& connection, std::uint32_t id, const Result<std::string>& result);
    Status flush(Connection& connection) const;
    void drop(Connection& connection, const Status& why);

    std::vector<sys::Address> addresses_;
    std::vector<UniqueFd> listeners_;
    UniqueFd epoll_;
    UniqueFd stop_;  // eventfd
    std::atomic<bool> stopping_{false};
    Connections connections_;
    std::multimap<std::string, int> waiters_;  // key to descriptor
    Dictionary entries_;
    std::unique_ptr<BackgroundThread> thread_;  // last: stops first
};

}  // namespace pccl::comm
