// SPDX-License-Identifier: Apache-2.0

// A net plug-in that has started: its functions with checked results, and its devices.
//
// Each function returns an error of one line with the file, the symbol and the call. A plug-in
// starts once in a process and stays until its end. A watchdog logs a warning about each call that
// does not return.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/base/fork.h"
#include "csrc/base/threads/poller.h"
#include "csrc/sys/net_plugin/calls.h"
#include "csrc/sys/net_plugin/library.h"
#include "csrc/sys/net_plugin/table.h"

namespace pccl::sys::net_plugin {

/// Handle of a listening communicator. A plug-in also keeps the state of connect() in it.
using Handle = std::array<std::byte, abi::net_plugin::kHandleBytes>;

class PCCL_API Plugin {
   public:
    Plugin(Library library, void* context, std::vector<DeviceProperties> devices, Duration limit);
    ~Plugin() = default;
    Plugin(const Plugin&) = delete;
    Plugin& operator=(const Plugin&) = delete;

    [[nodiscard]] const std::string& file() const { return library_.file; }
    [[nodiscard]] const std::string& symbol() const { return library_.symbol; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] int version() const { return library_.table->version(); }
    [[nodiscard]] int max_requests() const { return library_.table->max_requests(); }
    /// At least one.
    [[nodiscard]] const std::vector<DeviceProperties>& devices() const { return devices_; }

    /// Returns a slot for calls that exclude each other.
    [[nodiscard]] std::shared_ptr<CallSlot> slot(std::string subject) {
        return calls_.add(std::move(subject));
    }
    /// Returns the error for calls of a slot whose present call has not returned.
    [[nodiscard]] Status stuck(const CallSlot& slot) const;

    /// Returns the listening communicator, and writes its handle.
    [[nodiscard]] Result<void*> listen(CallSlot& slot, int device, Handle& handle) const;
    /// Returns null until the connection exists: call again with the same handle object.
    [[nodiscard]] Result<void*> connect(CallSlot& slot, int device, Handle& handle) const;
    [[nodiscard]] Result<void*> accept(CallSlot& slot, void* listen_comm) const;
    /// Registers host memory.
    [[nodiscard]] Result<void*> reg_mr(CallSlot& slot, void* comm,
                                       std::span<std::byte> memory) const;
    [[nodiscard]] Status dereg_mr(CallSlot& slot, void* comm, void* mhandle) const;
    /// Returns the request; null: call again.
    [[nodiscard]] Result<void*> isend(CallSlot& slot, void* comm, std::span<std::byte> bytes,
                                      int tag, void* mhandle) const;
    [[nodiscard]] Result<void*> irecv(CallSlot& slot, void* comm,
                                      std::span<const GroupedRecv> recvs) const;
    /// Returns whether the oldest request of a communicator is done; `sizes` has an entry per
    /// receive, which plug-ins may leave alone.
    [[nodiscard]] Result<bool> test(CallSlot& slot, void* request, std::span<int> sizes) const;
    /// Announces traffic to the plug-in, where it is more than before.
    Status expect(CallSlot& slot, const Traffic& traffic);
    Status close_send(CallSlot& slot, void* comm) const;
    Status close_recv(CallSlot& slot, void* comm) const;
    Status close_listen(CallSlot& slot, void* comm) const;

    /// Returns "net plug-in <file>: <symbol>: <what>".
    [[nodiscard]] std::string line(std::string_view what) const;

   private:
    [[nodiscard]] Status check(const char* call, Code code) const;

    const Library library_;
    void* const context_;
    const std::vector<DeviceProperties> devices_;
    const std::string name_;
    const Duration limit_;
    CallWatch calls_;
    std::mutex traffic_mutex_;
    Traffic traffic_;  // of the last expect(); guarded by traffic_mutex_
    std::unique_ptr<Poller, LeaveToParent> watchdog_;  // declared last: it uses the others
};

/// Returns the plug-in `name`, started at the first call; later calls return the same result.
/// kInvalidArgument where there is no such file. kUnavailable with one line where it cannot be
/// used: it has no table of a known version, crashes, or has not returned within `limit` while it
/// starts; it has no usable device.
[[nodiscard]] PCCL_API Result<Plugin*> start_plugin(const std::string& name, Duration limit);

}  // namespace pccl::sys::net_plugin
