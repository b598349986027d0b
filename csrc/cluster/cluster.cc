#include "csrc/cluster/cluster.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "csrc/base/log.h"
#include "csrc/base/text.h"
#include "csrc/cluster/audit_events.h"
#include "csrc/cluster/drivers/dialects.h"
#include "csrc/cluster/drivers/fabric_driver.h"
#include "csrc/cluster/drivers/netconf_driver.h"
#include "csrc/cluster/scatter.h"
#include "csrc/netconf/ssh_stream.h"

namespace pccl::cluster {
namespace {

Result<std::unique_ptr<netconf::ByteStream>> open_stream(const Management& management) {
    PCCL_ASSIGN_OR_RETURN(const auto addresses, sys::resolve(management.host, management.port));
    if (addresses.empty()) return Status::unavailable(concat(management.host, " has no address"));
    return netconf::make_ssh_stream(addresses.front(),
                                    {.host = concat(management.host, ":", management.port),
                                     .user = management.user,
                                     .key_file = management.key_file,
                                     .host_key = management.host_key,
                                     .accepts_any_host_key = management.accepts_any_host_key});
}

void scatter_to(Step step, std::vector<Part>& parts, const std::vector<std::size_t>& who,
                Duration timeout) {
    std::vector<Part> chosen;
    chosen.reserve(who.size());
    for (const std::size_t i : who) chosen.push_back(parts[i]);
    scatter(step, chosen, timeout);
    for (std::size_t k = 0; k < who.size(); ++k) parts[who[k]] = chosen[k];
}

std::vector<std::size_t> succeeded(const std::vector<Part>& parts, std::vector<std::size_t> who) {
    std::erase_if(who, [&](std::size_t i) { return !parts[i].status.is_ok(); });
    return who;
}

/// What each has connected; where a session has ended since it was last used, over a new one.
void read_all(std::vector<Part>& parts, Duration timeout) {
    std::vector<std::size_t> left(parts.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    for (int attempt = 0; attempt < 2 && !left.empty(); ++attempt) {
        scatter_to(Step::kConnect, parts, left, timeout);
        left = succeeded(parts, std::move(left));
        scatter_to(Step::kRead, parts, left, timeout);
        scatter_to(Step::kLight, parts, succeeded(parts, left), timeout);
        std::erase_if(
            left, [&](std::size_t i) { return parts[i].status.code() != StatusCode::kPeerLost; });
    }
}

/// kMismatch, with all that the switches show.
Status no_phase(const Inspection& inspection) {
    std::string shown;
    for (const Sight& each : inspection.switches)
        shown += concat(shown.empty() ? "" : "; ", each.name, ": ", to_string(each.circuits));
    return {StatusCode::kMismatch, concat("the switches show circuits of no phase (", shown,
                                          "); to overwrite them, switch with adopt")};
}

}  // namespace

Result<std::unique_ptr<Driver>> make_driver(const Switch& of) {
    if (of.is_in_process) return make_fabric_driver();
    return make_netconf_driver(
        *find_dialect(of.dialect), [management = of.management] { return open_stream(management); },
        of.ports);
}

Result<std::unique_ptr<Cluster>> Cluster::open(Description description, const MakeDriver& make) {
    PCCL_ASSIGN_OR_RETURN(AuditLog audit, AuditLog::open(description.audit_file));
    std::unique_ptr<Cluster> cluster(new Cluster(std::move(description), std::move(audit)));
    PCCL_TRY(cluster->make_drivers(make));
    return cluster;
}

Status Cluster::make_drivers(const MakeDriver& make) {
    for (const Switch& each : description_.switches) {
        PCCL_ASSIGN_OR_RETURN(drivers_[each.name], make(each));
    }
    return Status::ok();
}

Inspection Cluster::inspect(Duration timeout) {
    std::vector<Part> parts;
    parts.reserve(description_.switches.size());
    for (const Switch& each : description_.switches)
        parts.push_back({.driver = drivers_.at(each.name).get(), .intent = {}, .status = {}});
    read_all(parts, timeout);
    Inspection inspection;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        Sight sight{description_.switches[i].name, part.status, {}, {}};
        if (part.status.is_ok()) {
            sight.circuits = part.driver->circuits();
            sight.dark = part.driver->dark();
        }
        inspection.switches.push_back(std::move(sight));
        static_cast<void>(part.driver->take_exchanges());  // nothing was changed
    }
    inspection.phase = phase_shown(inspection.switches);
    return inspection;
}

std::string Cluster::phase_shown(const std::vector<Sight>& sights) const {
    for (const Sight& each : sights)
        if (!each.status.is_ok()) return {};
    for (const Phase& phase : description_.phases) {
        const auto wanted = circuits_of(description_, phase);
        const bool is_shown =
            wanted.is_ok() && std::all_of(sights.begin(), sights.end(), [&](const Sight& each) {
                return wanted->at(each.name) == each.circuits;
            });
        if (is_shown) return phase.name;
    }
    return {};
}

Status Cluster::adopt(Duration timeout) { return adopt(inspect(timeout)); }

Status Cluster::adopt(const Inspection& inspection) {
    for (const Sight& each : inspection.switches)
        PCCL_TRY(each.status.with_context(concat("switch ", each.name)));
    if (inspection.phase.empty()) return no_phase(inspection);
    PCCL_TRY(audit_.add(adoption_json(inspection.phase)));
    current_ = inspection.phase;
    degraded_ = Status::ok();
    return Status::ok();
}

Status Cluster::await_confirm_timeouts(const SwitchOptions& options) const {
    constexpr Duration kBetweenQuestions = std::chrono::milliseconds(100);
    Duration left{};
    for (const Switch& each : description_.switches)
        if (!each.is_in_process)
            left = std::max<Duration>(left, each.confirm_timeout + std::chrono::seconds(1));
    for (; left > Duration::zero(); left -= kBetweenQuestions) {
        options.clock->sleep_for(std::min(left, kBetweenQuestions));
        if (options.interrupted) PCCL_TRY(options.interrupted());
    }
    return Status::ok();
}

Result<std::string> Cluster::inherit(const SwitchOptions& options) {
    PCCL_TRY(await_confirm_timeouts(options));
    const Inspection inspection = inspect(options.step_timeout);
    const bool is_dark = std::ranges::all_of(inspection.switches, [](const Sight& each) {
        return each.status.is_ok() && each.circuits.empty();
    });
    if (is_dark)
        current_.clear();
    else
        PCCL_TRY(adopt(inspection));
    return current_;
}

Result<CircuitsBySwitch> Cluster::origin(const SwitchOptions& options) {
    if (!degraded_.is_ok() && !options.adopt) return degraded_;
    if (!current_.empty() && !options.adopt)
        return circuits_of(description_, *description_.phase(current_));
    const Inspection inspection = inspect(options.step_timeout);
    CircuitsBySwitch found;
    bool is_dark = true;
    for (const Sight& each : inspection.switches) {
        PCCL_TRY(each.status.with_context(concat("switch ", each.name)));
        found[each.name] = each.circuits;
        is_dark = is_dark && each.circuits.empty();
    }
    if (inspection.phase.empty() && !is_dark && !options.adopt) return no_phase(inspection);
    return found;
}

std::vector<Member> Cluster::members_between(const CircuitsBySwitch& from,
                                             const CircuitsBySwitch& to) {
    std::vector<Member> members;
    for (const Switch& each : description_.switches)
        if (from.at(each.name) != to.at(each.name))
            members.push_back({.name = each.name,
                               .driver = drivers_.at(each.name).get(),
                               .from = from.at(each.name),
                               .to = to.at(each.name),
                               .settle = each.settle,
                               .confirm_timeout = each.confirm_timeout});
    return members;
}

Result<Report> Cluster::switch_to(const std::string& phase, const SwitchOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const Phase* const target, find_phase(description_, phase));
    PCCL_ASSIGN_OR_RETURN(const CircuitsBySwitch to, circuits_of(description_, *target));
    PCCL_ASSIGN_OR_RETURN(const CircuitsBySwitch from, origin(options));
    const std::vector<Member> members = members_between(from, to);
    if (members.empty()) PCCL_TRY(prove(to, options.step_timeout));
    PCCL_TRY(audit_.add(beginning_json(current_, phase, members)));
    Report report = run_transaction(members, {.step_timeout = options.step_timeout,
                                              .dry_run = options.dry_run,
                                              .drain = options.drain,
                                              .interrupted = options.interrupted,
                                              .clock = options.clock});
    conclude(phase, report);
    const Status recorded = audit_.add(ending_json(phase, report));
    if (!recorded.is_ok()) log(LogLevel::kWarning, recorded.message());  // what was done is done
    return report;
}

Status Cluster::prove(const CircuitsBySwitch& wanted, Duration timeout) {
    const Inspection inspection = inspect(timeout);
    for (const Sight& each : inspection.switches) {
        PCCL_TRY(each.status.with_context(concat("switch ", each.name)));
        if (each.circuits != wanted.at(each.name)) return no_phase(inspection);
    }
    return Status::ok();
}

void Cluster::conclude(const std::string& phase, const Report& report) {
    if (report.ending == Ending::kDegraded) {
        degraded_ = report.reason;
        current_.clear();
    }
    if (report.ending != Ending::kSwitched) return;
    degraded_ = Status::ok();
    if (!report.members.empty()) ++generation_;
    current_ = phase;
}

}  // namespace pccl::cluster
