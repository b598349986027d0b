#include "csrc/comm/device/launch_order.h"

#include <utility>

namespace pccl::comm {

Status LaunchOrder::begin(Stream stream) {
    PCCL_ASSIGN_OR_RETURN(capture_, driver_.capture_of(stream));
    return capture_ == 0 ? begin_uncaptured(stream) : begin_captured(stream);
}

Status LaunchOrder::begin_uncaptured(Stream stream) {
    const auto last = std::exchange(last_, stream);
    if (all_done_) return driver_.await_event(stream, *all_done_);
    return !last || last == stream ? Status::ok() : driver_.follow(stream, *last);
}

Status LaunchOrder::begin_captured(Stream stream) {
    const auto last = std::exchange(last_captured_, stream);
    if (mark_.capture == capture_)
        return last == stream ? Status::ok() : driver_.follow(stream, *last);
    if (!all_done_) PCCL_TRY(make_event());
    PCCL_TRY(driver_.await_in_graph(stream, *all_done_));
    mark_ = {.capture = capture_};
    return Status::ok();
}

/// What was launched in a stream that is itself captured now cannot be recorded any more: replays
/// are behind it in that stream alone.
Status LaunchOrder::make_event() {
    PCCL_ASSIGN_OR_RETURN(all_done_, driver_.create_event());
    if (!last_) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t capture, driver_.capture_of(*last_));
    return capture == 0 ? driver_.record_again(*all_done_, *last_) : Status::ok();
}

Status LaunchOrder::end(Stream stream) {
    if (capture_ != 0) return driver_.record_in_graph(*all_done_, stream, mark_);
    return all_done_ ? driver_.record_again(*all_done_, stream) : Status::ok();
}

}  // namespace pccl::comm
