// SPDX-License-Identifier: Apache-2.0

// State of the plug-in in a process: its device, its listening communicators, and connection
// attempts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include <pccl/status.h>
#include "plugins/nccl/acceptor.h"
#include "plugins/nccl/connector.h"
#include "plugins/nccl/network_device.h"

namespace pccl::nccl {

/// Listening communicator.
class ListenComm {
   public:
    ListenComm(std::shared_ptr<Acceptor> acceptor, const transport::GroupId& id)
        : acceptor_(std::move(acceptor)), id_(id) {}
    ~ListenComm() { acceptor_->ignore(id_); }
    ListenComm(const ListenComm&) = delete;
    ListenComm& operator=(const ListenComm&) = delete;

    Result<std::unique_ptr<RecvComm>> accept() { return acceptor_->accept(id_); }

   private:
    const std::shared_ptr<Acceptor> acceptor_;
    const transport::GroupId id_;
};

/// Thread-safe.
class Plugin {
   public:
    /// Returns the plug-in of this process.
    static Plugin& of_process();

    /// Finds the interfaces, at the first call. Each call has a finalize(), but not in versions
    /// before 11.
    Status init();
    /// Frees attempts that nobody has continued, after the last init().
    void finalize();
    /// Returns the device; init() has succeeded before.
    [[nodiscard]] const NetworkDevice& device() const { return *device_; }

    /// Listens, and writes the handle.
    Result<std::unique_ptr<ListenComm>> listen(void* handle);
    /// Starts or continues to connect, by the state in the handle; null until the peer has
    /// accepted.
    Result<std::unique_ptr<SendComm>> connect(void* handle);

   private:
    Result<Connector*> attempt_of(void* handle);
    void end_attempt(void* handle);

    std::mutex mutex_;  // guards the next members; device_ changes in the first init() only
    std::optional<NetworkDevice> device_;
    Self self_;
    int users_ = 0;
    std::weak_ptr<Acceptor> acceptor_;  // of all ListenComms
    std::map<std::uint64_t, std::unique_ptr<Connector>> attempts_;
};

}  // namespace pccl::nccl
