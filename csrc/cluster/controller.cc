// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/controller.h"

#include <algorithm>

#include "csrc/base/scope_exit.h"

namespace pccl::cluster {
namespace {

using comm::NetworkReport;

NetworkReport refused(const Status& why) { return {.outcome = Ending::kRefused, .reason = why}; }

comm::SwitchReport switch_report(const MemberReport& member) {
    comm::SwitchReport report{.name = member.name,
                              .fault = member.status.message(),
                              .steps = {},
                              .found = {},
                              .discarded = member.discarded,
                              .startup = member.startup};
    for (const StepTime& each : member.steps)
        report.steps.push_back({std::string(to_string(each.step)), each.took});
    for (const Circuit& each : member.found) report.found.emplace_back(each.ingress, each.egress);
    return report;
}

}  // namespace

NetworkReport network_report(const Report& report) {
    NetworkReport out{.outcome = report.ending,
                      .reason = report.reason,
                      .total = report.total,
                      .dark = report.dark,
                      .unrecorded = report.unrecorded.message(),
                      .switches = {}};
    for (const MemberReport& each : report.members) out.switches.push_back(switch_report(each));
    return out;
}

Controller::Controller(std::unique_ptr<ClusterContext> context) : context_(std::move(context)) {}

Status Controller::begin() {
    if (!is_busy_.exchange(true)) return Status::ok();
    return Status::unavailable(
        "another call of this cluster is under way: call it again once that has ended");
}

void Controller::end() {
    {
        const std::lock_guard lock(mutex_);
        state_ = {.phase = context_->current(),
                  .generation = context_->generation(),
                  .degraded = context_->degraded().message()};
    }
    is_busy_.store(false);
}

template <typename Call>
auto Controller::alone(const Call& call) -> decltype(call()) {
    PCCL_TRY(begin());
    const ScopeExit ended([this] { end(); });
    return call();
}

ClusterState Controller::state() const {
    const std::lock_guard lock(mutex_);
    return state_;
}

void Controller::set_watch(Watch watch) {
    const std::lock_guard lock(mutex_);
    watch_ = std::move(watch);
}

SwitchOptions Controller::options_of(const comm::ControllerOptions& options) const {
    const std::lock_guard lock(mutex_);
    return {.step_timeout = options.step_timeout,
            .discard_candidate = options.discard_candidate,
            .interrupted = options.interrupted,
            .watch = watch_};
}

NetworkReport Controller::prepare(const std::string& phase,
                                  const comm::ControllerOptions& options) {
    if (const Status busy = begin(); !busy.is_ok()) return refused(busy);
    Result<Report> prepared = context_->prepare(phase, options_of(options));
    if (!prepared.is_ok() || prepared->ending != Ending::kPrepared) end();
    return prepared.is_ok() ? network_report(*prepared) : refused(prepared.status());
}

NetworkReport Controller::commit() {
    const ScopeExit ended([this] { end(); });
    const Result<Report> done = context_->commit();
    return done.is_ok() ? network_report(*done) : refused(done.status());
}

NetworkReport Controller::discard(const Status& why) {
    const ScopeExit ended([this] { end(); });
    const Result<Report> done = context_->leave(why);
    return done.is_ok() ? network_report(*done) : refused(done.status());
}

Result<std::string> Controller::read_back(const comm::ControllerOptions& options) {
    return alone([&] { return context_->inherit(options_of(options)); });
}

Result<Report> Controller::switch_phase(const std::string& phase, const SwitchOptions& options) {
    return alone([&] { return context_->switch_phase(phase, options); });
}

Result<Plan> Controller::plan(const std::string& from, const std::string& to) {
    return alone([&] { return context_->plan(from, to); });
}

Result<Inspection> Controller::inspect(Duration timeout, const Interrupted& interrupted) {
    return alone([&]() -> Result<Inspection> { return context_->inspect(timeout, interrupted); });
}

Status Controller::adopt(Duration timeout, const Interrupted& interrupted) {
    return alone([&] { return context_->adopt(timeout, interrupted); });
}

Result<std::vector<std::string>> Controller::audit() {
    return alone([&]() -> Result<std::vector<std::string>> { return context_->audit(); });
}

}  // namespace pccl::cluster
