// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "csrc/base/text/text.h"
#include "csrc/cluster/drivers/dialects.h"
#include "csrc/cluster/model/fit.h"
#include "csrc/cluster/model/name.h"

namespace pccl::cluster {
namespace {

/// Commit and read-back take 1 to 6 ms on netconfd, with up to eight switches and 64 circuits.
constexpr std::chrono::duration<double> kControl = std::chrono::milliseconds(6);

using Links = std::vector<RankLink>;

Links sorted(const Phase* phase) {
    Links links = phase == nullptr ? Links{} : phase->links;
    std::sort(links.begin(), links.end());
    return links;
}

Links only_in(const Links& these, const Links& those) {
    Links left;
    std::set_difference(these.begin(), these.end(), those.begin(), those.end(),
                        std::back_inserter(left));
    return left;
}

Result<CircuitsBySwitch> circuits_or_none(const Description& description, const Phase* phase) {
    return circuits_of(description, phase == nullptr ? Phase{} : *phase);
}

/// Returns the links of `origin` that lose a circuit on this switch.
Links links_over(const Description& description, const SwitchDescription& of, const Circuits& gone,
                 const Phase* origin) {
    const auto rank_at = ranks_at(description, of.name);
    const auto is_at = [&](int port) { return rank_at.contains(port); };
    Links links;
    if (of.kind == SwitchKind::kOptical) {
        for (const Circuit& each : gone)
            if (is_at(each.ingress) && is_at(each.egress))
                links.push_back({rank_at.at(each.ingress), rank_at.at(each.egress)});
    } else if (origin != nullptr) {
        std::set<Rank> moved;
        for (const Circuit& each : gone)
            if (is_at(each.ingress)) moved.insert(rank_at.at(each.ingress));
        std::ranges::copy_if(origin->links, std::back_inserter(links), [&](const RankLink& each) {
            return moved.contains(each.from) && moved.contains(each.to);
        });
    }
    std::sort(links.begin(), links.end());
    return links;
}

std::string name_of(const Phase* phase) { return phase == nullptr ? std::string() : phase->name; }

std::string xml_for(const SwitchDescription& of, const Change& change) {
    if (of.is_in_process) return {};
    return edit_xml(*find_dialect(of.dialect), change.removed_for_good(), change.add);
}

}  // namespace

Result<const Phase*> find_phase(const Description& description, const std::string& name) {
    const Phase* const found = description.phase(name);
    if (found != nullptr) return found;
    return no_such({"phase", "phases"}, name, description.phase_names());
}

Plan make_plan(const Description& description, const PhaseCircuits& from, const PhaseCircuits& to) {
    Plan plan{.from = name_of(from.phase), .to = name_of(to.phase)};
    plan.lost = only_in(sorted(from.phase), sorted(to.phase));
    plan.gained = only_in(sorted(to.phase), sorted(from.phase));
    Links moved;
    for (const SwitchDescription& each : description.switches) {
        const Circuits& before = from.circuits.at(each.name);
        const Circuits& after = to.circuits.at(each.name);
        const Change change = change_between(before, after);
        if (change.is_empty()) continue;
        plan.estimate = std::max<std::chrono::duration<double>>(
            plan.estimate, each.settle + (each.is_in_process ? kControl * 0 : kControl));
        const Links broken = links_over(description, each, change.remove, from.phase);
        moved.insert(moved.end(), broken.begin(), broken.end());
        plan.switches.push_back({each.name, before, after, change, xml_for(each, change)});
    }
    std::sort(moved.begin(), moved.end());
    plan.dark = only_in(moved, plan.lost);
    return plan;
}

Result<Plan> make_plan(const Description& description, const std::string& from,
                       const std::string& to) {
    const Phase* origin = nullptr;
    if (!from.empty()) {
        PCCL_ASSIGN_OR_RETURN(origin, find_phase(description, from));
    }
    PCCL_ASSIGN_OR_RETURN(const Phase* const target, find_phase(description, to));
    PCCL_ASSIGN_OR_RETURN(const auto before, circuits_or_none(description, origin));
    PCCL_ASSIGN_OR_RETURN(const auto after, circuits_or_none(description, target));
    return make_plan(description, PhaseCircuits{origin, before}, PhaseCircuits{target, after});
}

}  // namespace pccl::cluster
