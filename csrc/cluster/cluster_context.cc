// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/cluster_context.h"

#include <algorithm>

#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/cluster/audit_log.h"
#include "csrc/cluster/file/cluster_file.h"
#include "csrc/cluster/model/name.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::cluster {
namespace {

/// Bytes of the audit log reserved for the end of a transaction, per switch.
constexpr std::size_t kRoomForEnd = 8192;
constexpr std::string_view kCommands = "(commands)";  // no phase has such a name

std::string_view goal_name(const std::string& phase) {
    return phase.empty() ? kCommands : std::string_view(phase);
}

/// Returns kMismatch with the circuits that the switches show, which differ from this process's
/// record.
Status not_as_known(const Inspection& inspection) {
    if (!inspection.phase.empty())
        return {StatusCode::kMismatch, concat("the switches show phase ", inspection.phase,
                                              ": somebody else has changed it since, or a switch "
                                              "has restarted; adopt() takes that for the current "
                                              "phase, and switching with adopt overwrites it")};
    std::string shown;
    for (const Sight& each : inspection.switches)
        shown += concat(shown.empty() ? "" : "; ", each.name, ": ", to_string(each.circuits));
    return {StatusCode::kMismatch, concat("the switches show circuits of no phase (", shown,
                                          "); to overwrite them, switch with adopt")};
}

/// Returns the circuits of all switches; an error if one could not be read.
Result<CircuitsBySwitch> shown_by(const std::vector<Sight>& sights) {
    CircuitsBySwitch circuits;
    for (const Sight& each : sights) {
        PCCL_TRY(each.status.with_context(concat("switch ", each.name)));
        circuits[each.name] = each.circuits;
    }
    return circuits;
}

bool is_dark(const CircuitsBySwitch& circuits) {
    return std::ranges::all_of(circuits, [](const auto& each) { return each.second.empty(); });
}

}  // namespace

Result<std::unique_ptr<ClusterContext>> ClusterContext::open(Description description,
                                                             const MakeDriver& make) {
    PCCL_ASSIGN_OR_RETURN(AuditLog audit, AuditLog::open(description.audit_file));
    std::unique_ptr<ClusterContext> context(
        new ClusterContext(std::move(description), std::move(audit)));
    PCCL_TRY(context->make_switches(make));
    return context;
}

Result<std::unique_ptr<ClusterContext>> ClusterContext::load(const std::string& path,
                                                             const MakeDriver& make) {
    PCCL_ASSIGN_OR_RETURN(const std::string text, sys::read_file(path, kLongestClusterFile));
    PCCL_ASSIGN_OR_RETURN(Description description, parse_cluster_file(text, path));
    return open(std::move(description), make);
}

ClusterContext::~ClusterContext() {
    if (prepared_) static_cast<void>(discard());
}

Status ClusterContext::make_switches(const MakeDriver& make) {
    const Switch::Commit commit = [this](Switch& each, const SwitchOptions& options) {
        return commit_alone(each, options);
    };
    for (const SwitchDescription& each : description().switches) {
        PCCL_ASSIGN_OR_RETURN(auto driver, make(each));
        if (each.kind == SwitchKind::kOptical)
            switches_.push_back(std::make_unique<OpticalSwitch>(each, std::move(driver), commit));
        else
            switches_.push_back(std::make_unique<Switch>(each, std::move(driver), commit));
    }
    return Status::ok();
}

Status ClusterContext::register_phase(Phase phase) { return phases_.add_phase(std::move(phase)); }

Status ClusterContext::register_transform(const std::string& from, const std::string& to,
                                          Transform transform) {
    return phases_.add_transform(from, to, std::move(transform));
}

Result<Plan> ClusterContext::plan(const std::string& from, const std::string& to) const {
    if (from.empty()) return make_plan(description(), from, to);
    PCCL_ASSIGN_OR_RETURN(const Phase* const origin, find_phase(description(), from));
    PCCL_ASSIGN_OR_RETURN(const Phase* const target, find_phase(description(), to));
    PCCL_ASSIGN_OR_RETURN(const auto before, circuits_in(*origin));
    PCCL_ASSIGN_OR_RETURN(const auto after, phases_.circuits_after(from, before, *target));
    return make_plan(description(), PhaseCircuits{origin, before}, PhaseCircuits{target, after});
}

Result<Switch*> ClusterContext::switch_called(const std::string& name) {
    std::vector<std::string_view> names;
    for (const auto& each : switches_) {
        if (each->name() == name) return each.get();
        names.emplace_back(each->name());
    }
    return no_such({"switch", "switches"}, name, names);
}

Result<OpticalSwitch*> ClusterContext::optical_switch(const std::string& name) {
    PCCL_ASSIGN_OR_RETURN(Switch* const found, switch_called(name));
    if (auto* const optical = dynamic_cast<OpticalSwitch*>(found)) return optical;
    return Status::invalid_argument(concat("switch ", name, " is electrical"));
}

Status ClusterContext::degraded() const {
    for (const auto& each : switches_) PCCL_TRY(each->doubt());
    return Status::ok();
}

Status ClusterContext::check_nothing_prepared() const {
    if (!prepared_) return Status::ok();
    return Status::unavailable(concat("a change to ", goal_name(prepared_->goal.phase),
                                      " is prepared: commit or discard it first"));
}

Result<CircuitsBySwitch> ClusterContext::circuits_in(const Phase& phase) const {
    const auto known = phase.name == current_ ? proven() : std::nullopt;
    return known ? *known : circuits_of(description(), phase);
}

std::string ClusterContext::phase_with(const CircuitsBySwitch& circuits) const {
    return !current_.empty() && proven() == circuits ? current_ : phases_.phase_with(circuits);
}

std::optional<CircuitsBySwitch> ClusterContext::proven() const {
    CircuitsBySwitch circuits;
    for (const auto& each : switches_) {
        if (!each->proven()) return std::nullopt;
        circuits[each->name()] = *each->proven();
    }
    return circuits;
}

Inspection ClusterContext::inspect(Duration timeout, const Interrupted& interrupted) {
    std::vector<NamedDriver> drivers;
    drivers.reserve(switches_.size());
    for (const auto& each : switches_) drivers.push_back({each->name(), &each->driver()});
    Inspection inspection{.switches = look_at(drivers, timeout, interrupted), .phase = {}};
    const auto shown = shown_by(inspection.switches);
    if (shown.is_ok()) inspection.phase = phase_with(*shown);
    return inspection;
}

Status ClusterContext::adopt(Duration timeout, const Interrupted& interrupted) {
    PCCL_TRY(check_nothing_prepared());
    return adopt(inspect(timeout, interrupted));
}

Status ClusterContext::adopt(const Inspection& inspection) {
    PCCL_ASSIGN_OR_RETURN(const CircuitsBySwitch shown, shown_by(inspection.switches));
    if (inspection.phase.empty()) return not_as_known(inspection);
    PCCL_TRY(audit_.add(adoption_json(inspection.phase)));
    current_ = inspection.phase;
    for (const auto& each : switches_) each->prove(shown.at(each->name()));
    return Status::ok();
}

Status ClusterContext::await_confirm_timeouts(const SwitchOptions& options) const {
    constexpr Duration kBetweenQuestions = std::chrono::milliseconds(100);
    Duration left{};
    for (const SwitchDescription& each : description().switches)
        if (!each.is_in_process)
            left = std::max<Duration>(left, each.confirm_timeout + std::chrono::seconds(1));
    for (; left > Duration::zero(); left -= kBetweenQuestions) {
        options.clock->sleep_for(std::min(left, kBetweenQuestions));
        if (options.interrupted) PCCL_TRY(options.interrupted());
    }
    return Status::ok();
}

Result<std::string> ClusterContext::inherit(const SwitchOptions& options) {
    PCCL_TRY(check_nothing_prepared());
    PCCL_TRY(await_confirm_timeouts(options));
    const Inspection inspection = inspect(options.step_timeout, options.interrupted);
    const auto shown = shown_by(inspection.switches);
    if (shown.is_ok() && is_dark(*shown)) {
        current_.clear();
        for (const auto& each : switches_) each->forget(each->doubt());
    } else {
        PCCL_TRY(adopt(inspection));
    }
    return current_;
}

Result<CircuitsBySwitch> ClusterContext::origin(const SwitchOptions& options, bool may_be_any) {
    if (!options.adopt) {
        PCCL_TRY(degraded());
        if (auto known = proven()) return *std::move(known);
    }
    const Inspection inspection = inspect(options.step_timeout, options.interrupted);
    PCCL_ASSIGN_OR_RETURN(CircuitsBySwitch shown, shown_by(inspection.switches));
    if (may_be_any || !inspection.phase.empty() || is_dark(shown)) return shown;
    return not_as_known(inspection);
}

Result<ClusterContext::Goal> ClusterContext::goal_of(const std::string& phase,
                                                     const SwitchOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const Phase* const target, find_phase(description(), phase));
    for (const auto& each : switches_)
        if (!each->commands().empty())
            return Status::unavailable(concat(
                "switch ", each->name(), " has commands queued: commit or discard them first"));
    Goal goal{.phase = phase, .from = {}, .to = {}};
    PCCL_ASSIGN_OR_RETURN(goal.from, origin(options, options.adopt));
    PCCL_ASSIGN_OR_RETURN(goal.to, options.adopt
                                       ? circuits_in(*target)
                                       : phases_.circuits_after(current_, goal.from, *target));
    return goal;
}

Result<ClusterContext::Goal> ClusterContext::goal_of(const std::vector<Switch*>& commanded,
                                                     const SwitchOptions& options) {
    Goal goal;
    for (Switch* const each : commanded)
        if (!each->commands().empty()) goal.commanded.push_back({each, each->commands().size()});
    if (goal.commanded.empty())
        return Status::invalid_argument("no switch has commands queued: command one first");
    PCCL_ASSIGN_OR_RETURN(goal.from, origin(options, true));
    goal.to = goal.from;
    for (const Commanded& each : goal.commanded) {
        Circuits& circuits = goal.to.at(each.who->name());
        circuits = with_commands(std::move(circuits), each.who->commands());
        const bool is_optical = each.who->description().kind == SwitchKind::kOptical;
        const std::string conflict = conflict_in(circuits, is_optical);
        if (!conflict.empty())
            return Status::invalid_argument(
                concat("switch ", each.who->name(), " cannot do all that is queued: ", conflict));
    }
    return goal;
}

std::vector<SwitchMember> ClusterContext::members_of(const Goal& goal) {
    std::vector<SwitchMember> members;
    for (const auto& each : switches_) {
        const std::string& name = each->name();
        if (goal.from.at(name) == goal.to.at(name)) continue;
        members.push_back(
            {.name = name,
             .driver = &each->driver(),
             .from = goal.from.at(name),
             .to = goal.to.at(name),
             .settle = each->description().settle,
             .confirm_timeout = each->description().confirm_timeout,
             .copies_to_startup = each->description().copies_to_startup,
             .is_of_phase = [this, name, to = goal.to.at(name)](const Circuits& these) {
                 return these == to || is_of_phase(name, these);
             }});
    }
    return members;
}

Result<std::unique_ptr<Transaction>> ClusterContext::begin(const Goal& goal,
                                                           const SwitchOptions& options) {
    std::vector<SwitchMember> members = members_of(goal);
    if (members.empty()) PCCL_TRY(check_shown(goal.to, options));
    PCCL_TRY(audit_.add(beginning_json(current_, std::string(goal_name(goal.phase)), members),
                        (1 + members.size()) * kRoomForEnd));
    return std::make_unique<Transaction>(std::move(members), options);
}

Result<Report> ClusterContext::prepare(Goal goal, const SwitchOptions& options) {
    PCCL_ASSIGN_OR_RETURN(auto transaction, begin(goal, options));
    const Status why = transaction->prepare();
    if (why.is_ok()) {
        transaction->begin_drain();
        prepared_ = Prepared{std::move(goal), std::move(transaction)};
        Report report;
        report.ending = Ending::kPrepared;
        return report;
    }
    Report report = transaction->leave(why);
    conclude(goal, report);
    return report;
}

Result<Report> ClusterContext::prepare(const std::string& phase, const SwitchOptions& options) {
    PCCL_TRY(check_nothing_prepared());
    PCCL_ASSIGN_OR_RETURN(Goal goal, goal_of(phase, options));
    return prepare(std::move(goal), options);
}

Status ClusterContext::pre_commit(const std::string& phase, const SwitchOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const Report report, prepare(phase, options));
    return report.reason;
}

Status ClusterContext::pre_commit(const SwitchOptions& options) {
    PCCL_TRY(check_nothing_prepared());
    std::vector<Switch*> all;
    all.reserve(switches_.size());
    for (const auto& each : switches_) all.push_back(each.get());
    PCCL_ASSIGN_OR_RETURN(Goal goal, goal_of(all, options));
    PCCL_ASSIGN_OR_RETURN(const Report report, prepare(std::move(goal), options));
    return report.reason;
}

Result<Report> ClusterContext::commit() {
    if (!prepared_)
        return Status::invalid_argument("nothing is prepared to be committed: pre_commit first");
    const Prepared prepared = *std::exchange(prepared_, std::nullopt);
    Report report = prepared.transaction->commit();
    conclude(prepared.goal, report);
    return report;
}

Status ClusterContext::discard() { return leave(Status::aborted("it was discarded")).status(); }

Result<Report> ClusterContext::leave(const Status& why) {
    if (!prepared_) return Status::invalid_argument("nothing is prepared that could be discarded");
    const Prepared prepared = *std::exchange(prepared_, std::nullopt);
    Report report = prepared.transaction->leave(why);
    conclude(prepared.goal, report);
    return report;
}

Result<Report> ClusterContext::switch_phase(const std::string& phase,
                                            const SwitchOptions& options) {
    PCCL_TRY(check_nothing_prepared());
    PCCL_ASSIGN_OR_RETURN(const Goal goal, goal_of(phase, options));
    return carry_out(goal, options);
}

Result<Report> ClusterContext::commit_alone(Switch& commanded, const SwitchOptions& options) {
    PCCL_TRY(check_nothing_prepared());
    PCCL_ASSIGN_OR_RETURN(const Goal goal, goal_of({&commanded}, options));
    return carry_out(goal, options);
}

Result<Report> ClusterContext::carry_out(const Goal& goal, const SwitchOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const auto transaction, begin(goal, options));
    Report report = transaction->run();
    conclude(goal, report);
    return report;
}

Status ClusterContext::check_shown(const CircuitsBySwitch& wanted, const SwitchOptions& options) {
    const Inspection inspection = inspect(options.step_timeout, options.interrupted);
    PCCL_ASSIGN_OR_RETURN(const CircuitsBySwitch shown, shown_by(inspection.switches));
    return shown == wanted ? Status::ok() : not_as_known(inspection);
}

bool ClusterContext::is_of_phase(const std::string& of_switch, const Circuits& circuits) const {
    return std::ranges::any_of(description().phases, [&](const Phase& each) {
        const auto its_own = circuits_of(description(), each);
        return its_own.is_ok() && its_own->at(of_switch) == circuits;
    });
}

void ClusterContext::conclude(const Goal& goal, Report& report) {
    take_over(goal, report);
    report.unrecorded = audit_.add_done(ending_json(std::string(goal_name(goal.phase)), report));
    if (!report.unrecorded.is_ok()) log(LogLevel::kError, report.unrecorded.message());
}

void ClusterContext::take_over(const Goal& goal, const Report& report) {
    if (report.ending == Ending::kDegraded) {
        for (const auto& each : switches_)
            if (goal.from.at(each->name()) != goal.to.at(each->name())) each->forget(report.reason);
        current_.clear();
    }
    if (report.ending != Ending::kSwitched) return;
    for (const auto& each : switches_) each->prove(goal.to.at(each->name()));
    for (const Commanded& each : goal.commanded) each.who->drop_commands(each.commands);
    if (!report.members.empty()) ++generation_;
    current_ = goal.phase;
    if (current_.empty()) current_ = phase_with(goal.to);
}

}  // namespace pccl::cluster
