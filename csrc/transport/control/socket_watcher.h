// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pccl/status.h>

namespace pccl::transport {

/// Interface that ends this process's sleeps on socket events.
class SocketWatcher {
   public:
    /// Watches a socket, edge-triggered, for input and output, in every thread. Closing the
    /// descriptor ends the watch.
    virtual Status watch(int fd) = 0;
    virtual void unwatch(int fd) = 0;

   protected:
    ~SocketWatcher() = default;
};

}  // namespace pccl::transport
