// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/scatter.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::cluster {
namespace {

using Ended = std::function<void(SwitchTask&)>;

/// Advances each task; removes the tasks that are done.
void advance_all(std::vector<SwitchTask*>& pending, TimePoint begun, const Ended& ended) {
    std::erase_if(pending, [&](SwitchTask* part) {
        const auto done = part->driver->advance();
        if (done.is_ok() && !*done) return false;
        part->status = done.status();
        part->took = system_clock().now() - begun;
        ended(*part);
        return true;
    });
}

void await_news(const std::vector<SwitchTask*>& pending, Duration longest) {
    constexpr Duration kBetweenLooks = std::chrono::milliseconds(1);
    std::vector<sys::Interest> interests;
    for (const SwitchTask* part : pending) {
        const Readiness ready = part->driver->readiness();
        if (ready.fd < 0) longest = std::min(longest, kBetweenLooks);
        interests.push_back({.fd = ready.fd, .input = ready.input, .output = ready.output});
    }
    sys::wait_for_any(interests, longest);
}

Status timed_out(Step step, const SwitchDriver& driver, Duration timeout,
                 const Status& interruption) {
    const std::string awaited = driver.awaited();
    const std::string who = awaited.empty() ? "" : concat(" of ", awaited, ",");
    if (!interruption.is_ok())
        return Status::timeout(
            concat("no answer", who, " to ", to_string(step), " before the interruption"));
    const double seconds = std::chrono::duration<double>(timeout).count();
    return Status::timeout(
        concat("no answer", who, " to ", to_string(step), " within ", seconds, " s"));
}

}  // namespace

Status scatter(Step step, std::span<SwitchTask> parts, Duration timeout,
               const ScatterCalls& calls) {
    const Ended report = [&](SwitchTask& part) {
        if (calls.ended) calls.ended(static_cast<std::size_t>(&part - parts.data()));
    };
    const TimePoint begun = system_clock().now();
    const Deadline deadline = Deadline::from(begun, timeout);
    std::vector<SwitchTask*> pending;
    for (SwitchTask& part : parts) {
        part.status = Status::ok();
        part.driver->begin(step, part.intent);
        pending.push_back(&part);
    }
    Status interruption;
    for (advance_all(pending, begun, report); !pending.empty();
         advance_all(pending, begun, report)) {
        if (calls.interrupted) interruption = calls.interrupted();
        if (deadline.passed() || !interruption.is_ok()) break;
        await_news(pending, deadline.slice());
    }
    for (SwitchTask* part : pending) {
        part->status = timed_out(step, *part->driver, timeout, interruption);
        part->took = system_clock().now() - begun;
        part->driver->abandon(part->status);
        report(*part);
    }
    return interruption;
}

}  // namespace pccl::cluster
