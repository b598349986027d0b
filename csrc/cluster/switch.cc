// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/switch.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::cluster {

Switch::Switch(const SwitchDescription& description, std::unique_ptr<SwitchDriver> driver,
               Commit commit)
    : description_(description), driver_(std::move(driver)), commit_(std::move(commit)) {}

Status Switch::command(const Command& command) {
    constexpr std::size_t kMostCommands = 65536;
    PCCL_TRY(check_command(description_, command).with_context(concat("switch ", name())));
    if (commands_.size() == kMostCommands)
        return Status::resource_exhausted(
            concat("switch ", name(), " has ", kMostCommands, " commands queued: commit them"));
    commands_.push_back(command);
    return Status::ok();
}

void Switch::drop_commands(std::size_t count) {
    const auto dropped = static_cast<std::ptrdiff_t>(std::min(count, commands_.size()));
    commands_.erase(commands_.begin(), commands_.begin() + dropped);
}

Result<Report> Switch::commit(const SwitchOptions& options) { return commit_(*this, options); }

Sight Switch::look(Duration timeout) {
    return look_at({{.name = name(), .driver = driver_.get()}}, timeout).front();
}

void Switch::prove(Circuits circuits) {
    proven_ = std::move(circuits);
    doubt_ = Status::ok();
}

void Switch::forget(const Status& doubt) {
    proven_.reset();
    doubt_ = doubt;
}

Result<std::vector<int>> OpticalSwitch::dark(Duration timeout) {
    Sight sight = look(timeout);
    PCCL_TRY(sight.status.with_context(concat("switch ", name())));
    return std::move(sight.dark);
}

}  // namespace pccl::cluster
