#include "csrc/device/launch/launch_window.h"

#include <algorithm>
#include <iterator>

#include "csrc/abi/device_team.h"
#include "csrc/sys/cuda/per_device.h"

namespace pccl::device {

Result<std::shared_ptr<LaunchWindow>> LaunchWindow::of(sys::cuda::Driver& driver, int device) {
    static sys::cuda::PerDevice<LaunchWindow> windows;
    return windows.find_or(driver, device, [&]() -> Result<std::shared_ptr<LaunchWindow>> {
        PCCL_ASSIGN_OR_RETURN(const int multiprocessors, driver.multiprocessors(device));
        return std::shared_ptr<LaunchWindow>(new LaunchWindow(driver, multiprocessors));
    });
}

LaunchWindow::~LaunchWindow() {
    for (const Lane& lane : lanes_) drop(lane.end);
    for (const sys::cuda::Event event : before_) drop(event);
}

bool LaunchWindow::is_needed() const {
    const auto groups = static_cast<int>(weak_from_this().use_count());
    return (groups - 1) * abi::kMostBlocks >= multiprocessors_;
}

Result<LaunchWindow::Turn> LaunchWindow::begin(const Launch& launch) {
    if (!is_needed()) return Turn();
    const auto capture = driver_.capture_of(launch.stream);
    if (!capture.is_ok() || *capture != 0) return Turn();
    std::unique_lock lock(mutex_);
    forget_finished();
    auto own = lane_of(launch);
    if (!fits(launch, own)) {
        begin_round();
        own = lanes_.end();
    }
    Lane lane{.last = launch};
    if (own == lanes_.end()) {
        for (const sys::cuda::Event event : before_)
            PCCL_TRY(driver_.await_event(launch.stream, event));
    } else {
        lane.last.blocks = std::max(launch.blocks, own->last.blocks);
        lane.end = own->end;
        lanes_.erase(own);
    }
    lanes_.push_back(lane);
    return Turn(*this, std::move(lock));
}

void LaunchWindow::forget_finished() {
    const auto is_over = [this](sys::cuda::Event event) {
        const auto has_come = driver_.has_come(event);
        if (!has_come.is_ok() || !*has_come) return false;
        drop(event);
        return true;
    };
    std::erase_if(lanes_, [&](const Lane& lane) { return is_over(lane.end); });
    std::erase_if(before_, is_over);
}

LaunchWindow::Lanes::iterator LaunchWindow::lane_of(const Launch& launch) {
    const auto found =
        std::ranges::find(lanes_, launch.group, [](const Lane& lane) { return lane.last.group; });
    if (found != lanes_.end()) return found;
    return std::ranges::find(lanes_, launch.stream,
                             [](const Lane& lane) { return lane.last.stream; });
}

bool LaunchWindow::fits(const Launch& launch, Lanes::const_iterator own) const {
    int all = launch.blocks;
    if (own != lanes_.end()) all = std::max(all, own->last.blocks);
    int smallest = all;
    bool is_alone = true;
    for (auto other = lanes_.begin(); other != lanes_.end(); ++other) {
        if (other == own) continue;
        is_alone = false;
        all += other->last.blocks;
        smallest = std::min(smallest, other->last.blocks);
    }
    return is_alone || all - smallest < multiprocessors_;
}

void LaunchWindow::begin_round() {
    std::ranges::for_each(before_, [this](auto event) { drop(event); });
    before_.clear();
    std::ranges::transform(lanes_, std::back_inserter(before_), &Lane::end);
    lanes_.clear();
}

void LaunchWindow::end() {
    Lane& lane = lanes_.back();
    if (lane.end != nullptr) drop(lane.end);
    const auto end = driver_.record(lane.last.stream);
    lane.end = end.is_ok() ? *end : nullptr;
    // A GPU that cannot even record has failed, and says so at the next call.
    if (!end.is_ok()) lanes_.pop_back();
}

void LaunchWindow::drop(sys::cuda::Event event) const {
    static_cast<void>(driver_.destroy_event(event));
}

}  // namespace pccl::device
