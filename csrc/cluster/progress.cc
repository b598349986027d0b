// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/progress.h"

#include <utility>

namespace pccl::cluster {

ProgressReporter::ProgressReporter(Watch watch, const std::vector<std::string>& names)
    : watch_(std::move(watch)) {
    if (!watch_) return;
    for (const std::string& each : names) progress_.switches.push_back({.name = each});
}

void ProgressReporter::begin_part(std::string_view part) {
    progress_.part = part;
    report();
}

void ProgressReporter::begin(std::string_view doing, const std::vector<std::size_t>& who) {
    if (!watch_) return;
    for (const std::size_t i : who) {
        SwitchProgress& each = progress_.switches[i];
        each.doing = doing;
        each.is_done = false;
        each.fault = Status::ok();
    }
    report();
}

void ProgressReporter::end(std::size_t who, const Status& status) {
    if (!watch_) return;
    progress_.switches[who].is_done = status.is_ok();
    progress_.switches[who].fault = status;
    report();
}

void ProgressReporter::report() const {
    if (watch_) watch_(progress_);
}

}  // namespace pccl::cluster
