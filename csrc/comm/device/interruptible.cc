#include "csrc/comm/device/interruptible.h"

#include <chrono>
#include <future>

#include "csrc/base/background_thread.h"
#include "csrc/base/fork.h"

namespace pccl::comm {
namespace {

constexpr std::chrono::milliseconds kBetweenQuestions{100};

}  // namespace

Result<std::shared_ptr<DeviceGroup>> create_interruptibly(
    const DeviceGroupOptions& options, const std::function<Status()>& interrupted) {
    PCCL_TRY(interrupted());
    Cancellation cancellation;
    std::promise<Result<std::unique_ptr<DeviceGroup>>> promise;
    auto made = promise.get_future();
    const BackgroundThread thread(
        "pccl-gpu-meet", [&] { promise.set_value(DeviceGroup::create(options, &cancellation)); });
    Status reason;
    while (reason.is_ok() && made.wait_for(kBetweenQuestions) != std::future_status::ready)
        reason = interrupted();
    if (!reason.is_ok()) cancellation.set(reason);
    auto group = made.get();
    PCCL_TRY(reason);
    PCCL_TRY(group.status());
    PCCL_TRY((*group)->use_device());
    return std::shared_ptr<DeviceGroup>(group->release(), LeaveToParent());
}

}  // namespace pccl::comm
