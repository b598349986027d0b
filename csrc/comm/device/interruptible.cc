#include "csrc/comm/device/interruptible.h"

#include <atomic>
#include <chrono>
#include <future>

#include "csrc/base/background_thread.h"

namespace pccl::comm {

Result<std::unique_ptr<DeviceGroup>> create_interruptibly(
    const DeviceGroupOptions& options, const std::function<Status()>& interrupted) {
    std::atomic<bool> is_cancelled{false};
    std::promise<Result<std::unique_ptr<DeviceGroup>>> promise;
    auto made = promise.get_future();
    const BackgroundThread thread(
        "pccl-gpu-meet", [&] { promise.set_value(DeviceGroup::create(options, &is_cancelled)); });
    Status reason;
    while (made.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
        if (reason.is_ok()) reason = interrupted();
        is_cancelled.store(!reason.is_ok());
    }
    auto group = made.get();
    PCCL_TRY(reason);
    if (group.is_ok()) PCCL_TRY((*group)->use_device());
    return group;
}

}  // namespace pccl::comm
