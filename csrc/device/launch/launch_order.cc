// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/launch_order.h"

#include <chrono>
#include <utility>

#include "csrc/base/scope_exit.h"

namespace pccl::device {

Status LaunchOrder::begin(Stream stream) {
    PCCL_ASSIGN_OR_RETURN(capture_, driver_.capture_of(stream));
    return capture_ == 0 ? begin_uncaptured(stream) : begin_captured(stream);
}

Status LaunchOrder::begin_uncaptured(Stream stream) {
    const auto last = std::exchange(last_, stream);
    if (all_done_) PCCL_TRY(driver_.await_event(stream, *all_done_));
    if (is_last_included_ || !last || last == stream) return Status::ok();
    return driver_.order_after(stream, *last);
}

Status LaunchOrder::begin_captured(Stream stream) {
    const auto last = std::exchange(last_captured_, stream);
    if (last_capture_ == capture_)
        return last == stream ? Status::ok() : driver_.order_after(stream, *last);
    if (!all_done_) PCCL_TRY(make_event());
    PCCL_TRY(driver_.await_in_graph(stream, *all_done_));
    last_capture_ = capture_;
    mark_ = {};
    return Status::ok();
}

Status LaunchOrder::make_event() {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Event event, driver_.create_event());
    all_done_ = event;
    if (!last_) return Status::ok();
    const auto capture = driver_.capture_of(*last_);
    if (!capture.is_ok() || *capture != 0) return Status::ok();
    is_last_included_ = true;
    return driver_.record_into(event, *last_);
}

Status LaunchOrder::end(Stream stream) {
    const Status recorded = record(stream);
    // The kernel is already launched, so the error must not look like a refused launch.
    return recorded.is_ok() ? recorded : Status::internal(recorded.message());
}

Status LaunchOrder::record(Stream stream) {
    if (capture_ != 0) return driver_.record_in_graph(*all_done_, stream, mark_);
    if (!all_done_) return Status::ok();
    is_last_included_ = true;
    return driver_.record_into(*all_done_, stream);
}

bool LaunchOrder::await_all(Deadline deadline) {
    if (all_done_ && !await(*all_done_, deadline)) return false;
    if (!last_ || is_last_included_) return true;
    const auto capture = driver_.capture_of(*last_);
    if (capture.is_ok() && *capture != 0) return false;
    const auto end = driver_.record(*last_);
    if (!end.is_ok()) return true;
    const ScopeExit destroy([&] { static_cast<void>(driver_.destroy_event(*end)); });
    return await(*end, deadline);
}

/// Waits for `event`. A failed GPU counts as finished: nothing runs there any more.
bool LaunchOrder::await(sys::cuda::Event event, Deadline deadline) {
    constexpr Duration kBetweenLooks = std::chrono::microseconds(100);
    for (;;) {
        const auto has_come = driver_.has_come(event);
        if (!has_come.is_ok() || *has_come) return true;
        if (deadline.passed()) return false;
        system_clock().sleep_for(kBetweenLooks);
    }
}

}  // namespace pccl::device
