// SPDX-License-Identifier: Apache-2.0

// Opened RDMA devices.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/verbs/device_info.h"
#include "csrc/sys/verbs/handle.h"
#include "csrc/sys/verbs/libibverbs.h"

namespace pccl::sys::verbs {

/// Event of a device or a port that did not come from a call: its kind, and the port (0: none).
struct AsyncEvent {
    ibv_event_type type{};
    int port = 0;
    std::string text;  // "port error"
};

class Device {
   public:
    /// Opens a device. kUnavailable where there is none of that name, or the kernel refuses it.
    static Result<std::shared_ptr<Device>> open(const std::string& name);

    /// Returns the state of the device and its ports when it was opened.
    [[nodiscard]] const DeviceInfo& info() const { return info_; }
    [[nodiscard]] const Libibverbs& verbs() const { return library_; }
    [[nodiscard]] ibv_context* context() const { return context_.get(); }
    /// Returns a descriptor that is readable when next_event() has an event.
    [[nodiscard]] int event_fd() const { return context_->async_fd; }
    /// Takes events until there is none, and returns them. Does not block.
    [[nodiscard]] std::vector<AsyncEvent> take_events();
    /// Returns the present state of a port.
    [[nodiscard]] Result<PortInfo> query_port(int number) const;

   private:
    Device(const Libibverbs& library, Handle<ibv_context> context)
        : library_(library), context_(std::move(context)) {}
    Status describe(const std::string& sysfs_path);
    [[nodiscard]] std::vector<GidEntry> gids_of(int port, int count) const;
    [[nodiscard]] bool read_gid(int port, int index, GidEntry& entry) const;

    const Libibverbs& library_;
    Handle<ibv_context> context_;
    DeviceInfo info_;
};

/// Returns the names of the devices of this machine, in the order of the library. kUnavailable
/// where there is no library; empty where no device is visible.
[[nodiscard]] Result<std::vector<std::string>> list_device_names();

/// Returns the devices of this machine, in the order of the library. kUnavailable where there is no
/// library; empty where no device is visible. Devices that cannot be opened are left out, with a
/// line in the log.
[[nodiscard]] Result<std::vector<DeviceInfo>> list_devices();

}  // namespace pccl::sys::verbs
