// SPDX-License-Identifier: Apache-2.0

// Server of TcpStore: a dictionary behind sockets, on a thread of its own.
//
// The server reads nothing of a connection before its handshake, which is bounded like every
// handshake (transport/control/handshake_server.h). A client that sends malformed bytes or partial
// requests, or does not read its answers, costs at most two frames of memory for a minute. It is
// then dropped with a line in the log. Clients use at most three quarters of this process's file
// descriptors, so that some are left for other purposes; further clients wait in the kernel's
// queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/log/limited_log.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/base/unique_fd.h"
#include "csrc/bootstrap/rendezvous/dictionary.h"
#include "csrc/bootstrap/rendezvous/tcp_protocol.h"
#include "csrc/sys/socket/address.h"
#include "csrc/transport/control/handshake_server.h"

namespace pccl::bootstrap {

class StoreServer final : private transport::HandshakeHost {
   public:
    struct StoreServerOptions {
        transport::Secret secret = kNoStoreSecret;
        Duration request_timeout = kStoreTimeout;
        std::size_t most_clients = 0;  // 0: from the limit of this process
    };

    /// Listens at all of `addresses` (port 0: any free port). Errors are those of sys::listen_on.
    static Result<std::unique_ptr<StoreServer>> start(std::span<const sys::Address> addresses,
                                                      const StoreServerOptions& options);
    /// Sends the pending answers, for at most one second, and closes all connections.
    ~StoreServer() override;
    StoreServer(const StoreServer&) = delete;
    StoreServer& operator=(const StoreServer&) = delete;

    /// Returns false in a child of fork(), in which the server's thread does not exist.
    [[nodiscard]] bool is_of_this_process() const { return !made_in_.is_child(); }
    /// Returns the addresses with the ports that the system has chosen.
    [[nodiscard]] const std::vector<sys::Address>& addresses() const { return addresses_; }

   private:
    struct Parked {
        std::string key;
        std::uint32_t id = 0;
    };
    struct ClientConnection {
        UniqueFd socket;
        Dictionary::Owner owner = 0;
        std::string in;
        std::string out;
        bool writing = false;                // watched for output instead of input
        std::optional<Parked> parked;        // until the key exists
        std::optional<Deadline> unfinished;  // for the rest of a frame in either direction
    };
    using Connections = std::map<int, ClientConnection>;  // by descriptor

    explicit StoreServer(const StoreServerOptions& options);
    Status listen(const sys::Address& address);
    [[nodiscard]] Status watch(int fd, int action, unsigned events) const;

    void serve();
    void tend(int fd);
    [[nodiscard]] Duration between_looks() const;
    void open_doors(bool open);
    void welcome(UniqueFd socket);
    std::optional<transport::Secret> secret_of(const transport::GroupId& group) override;
    void refused(std::string_view transport_name, const Status& why) override;

    void advance(ClientConnection& connection);
    [[nodiscard]] static Status receive(ClientConnection& connection);
    Status obey(ClientConnection& connection);
    void execute(ClientConnection& connection, StoreRequest& request);
    void wake_waiters(const std::string& key);
    void unpark(ClientConnection& connection);
    static void answer(ClientConnection& connection, std::uint32_t id,
                       const Result<std::string>& result);
    [[nodiscard]] Status flush(ClientConnection& connection);
    void begin_frame(ClientConnection& connection);
    void end_frame(ClientConnection& connection);
    void drop(ClientConnection& connection, const Status& why);
    void drop_overdue();

    const StoreServerOptions options_;
    const ForkMark made_in_;
    std::vector<sys::Address> addresses_;
    std::vector<std::unique_ptr<transport::HandshakeServer>> doors_;  // one for each address
    bool doors_are_open_ = true;
    UniqueFd epoll_;
    UniqueFd stop_;  // eventfd
    std::atomic<bool> stopping_{false};
    Connections connections_;
    std::set<std::pair<std::string, int>> waiters_;  // keys with descriptors
    Dictionary entries_;
    Dictionary::Owner last_owner_ = 0;
    std::size_t unfinished_ = 0;  // connections with an unfinished frame
    Deadline next_look_ = Deadline::after(Duration::zero());  // at the unfinished frames
    LimitedLog log_{"connections of the rendezvous store refused or dropped"};
    std::unique_ptr<BackgroundThread> thread_;  // last: the thread stops first
};

}  // namespace pccl::bootstrap
