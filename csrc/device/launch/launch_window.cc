// SPDX-License-Identifier: Apache-2.0
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
    for (const WindowSequence& sequence : sequences_) drop(sequence.end);
    for (const sys::cuda::Event event : before_) drop(event);
}

bool LaunchWindow::is_needed() const {
    const auto groups = static_cast<int>(weak_from_this().use_count());
    return (groups - 1) * abi::kMostBlocks >= multiprocessors_;
}

Result<LaunchWindow::LaunchPermit> LaunchWindow::begin(const PendingLaunch& launch) {
    if (!is_needed()) return LaunchPermit();
    const auto capture = driver_.capture_of(launch.stream);
    if (!capture.is_ok() || *capture != 0) return LaunchPermit();
    std::unique_lock lock(mutex_);
    forget_finished();
    auto own = sequence_of(launch);
    if (!fits(launch, own)) {
        begin_round();
        own = sequences_.end();
    }
    WindowSequence sequence{.last = launch};
    if (own == sequences_.end()) {
        for (const sys::cuda::Event event : before_)
            PCCL_TRY(driver_.await_event(launch.stream, event));
    } else {
        sequence.last.blocks = std::max(launch.blocks, own->last.blocks);
        sequence.end = own->end;
        sequences_.erase(own);
    }
    sequences_.push_back(sequence);
    return LaunchPermit(*this, std::move(lock));
}

void LaunchWindow::forget_finished() {
    const auto is_over = [this](sys::cuda::Event event) {
        const auto has_come = driver_.has_come(event);
        if (!has_come.is_ok() || !*has_come) return false;
        drop(event);
        return true;
    };
    std::erase_if(sequences_,
                  [&](const WindowSequence& sequence) { return is_over(sequence.end); });
    std::erase_if(before_, is_over);
}

LaunchWindow::WindowSequences::iterator LaunchWindow::sequence_of(const PendingLaunch& launch) {
    const auto found =
        std::ranges::find(sequences_, launch.group,
                          [](const WindowSequence& sequence) { return sequence.last.group; });
    if (found != sequences_.end()) return found;
    return std::ranges::find(sequences_, launch.stream,
                             [](const WindowSequence& sequence) { return sequence.last.stream; });
}

bool LaunchWindow::fits(const PendingLaunch& launch, WindowSequences::const_iterator own) const {
    int all = launch.blocks;
    if (own != sequences_.end()) all = std::max(all, own->last.blocks);
    int smallest = all;
    bool is_alone = true;
    for (auto other = sequences_.begin(); other != sequences_.end(); ++other) {
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
    std::ranges::transform(sequences_, std::back_inserter(before_), &WindowSequence::end);
    sequences_.clear();
}

void LaunchWindow::end() {
    WindowSequence& sequence = sequences_.back();
    if (sequence.end != nullptr) drop(sequence.end);
    const auto end = driver_.record(sequence.last.stream);
    sequence.end = end.is_ok() ? *end : nullptr;
    // A GPU that cannot record an event has failed, and reports that at the next call.
    if (!end.is_ok()) sequences_.pop_back();
}

void LaunchWindow::drop(sys::cuda::Event event) const {
    static_cast<void>(driver_.destroy_event(event));
}

}  // namespace pccl::device
