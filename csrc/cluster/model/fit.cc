// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/model/fit.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <pccl/phases.h>
#include "csrc/base/text/text.h"
#include "csrc/cluster/model/name.h"

namespace pccl::cluster {
namespace {

using Links = std::vector<RankLink>;

Links only_in(const Links& these, const Links& those) {
    Links left;
    std::ranges::set_difference(these, those, std::back_inserter(left));
    return left;
}

Status check_link(const Phase& phase, const RankLink& link, Rank ranks) {
    const auto is_known = [&](Rank rank) { return rank >= 0 && rank < ranks; };
    if (is_known(link.from) && is_known(link.to) && link.from != link.to) return Status::ok();
    return Status::invalid_argument(concat("phase ", phase.name, ": link ", link.from, " -> ",
                                           link.to, " must join two different ranks from 0 to ",
                                           ranks - 1));
}

/// Adds the links that the circuits of an optical switch carry.
Status add_links(const Description& description, const std::string& of_switch,
                 const Circuits& circuits, Links& links) {
    const auto rank_at = ranks_at(description, of_switch);
    for (const Circuit& each : circuits) {
        for (const int port : {each.ingress, each.egress})
            if (!rank_at.contains(port))
                return Status::invalid_argument(concat("no device is at port ", port));
        links.push_back({rank_at.at(each.ingress), rank_at.at(each.egress)});
    }
    const std::string conflict = conflict_in(circuits, true);
    return conflict.empty() ? Status::ok() : Status::invalid_argument(conflict);
}

/// Returns the links over all optical switches, in ascending order.
Result<Links> links_over(const Description& description, const CircuitsBySwitch& circuits) {
    Links links;
    for (const SwitchDescription& each : description.switches)
        if (each.kind == SwitchKind::kOptical)
            PCCL_TRY(add_links(description, each.name, circuits.at(each.name), links)
                         .with_context(concat("switch ", each.name)));
    std::ranges::sort(links);
    return links;
}

/// Checks that every switch has circuits, and that electrical ones have the wanted ones.
Status check_switches(const Description& description, const CircuitsBySwitch& wanted,
                      const CircuitsBySwitch& circuits) {
    for (const auto& [name, each] : circuits)
        if (!wanted.contains(name))
            return Status::invalid_argument(concat("there is no switch ", name));
    for (const SwitchDescription& each : description.switches) {
        const auto found = circuits.find(each.name);
        if (found == circuits.end())
            return Status::invalid_argument(concat("switch ", each.name, " is missing"));
        if (each.kind != SwitchKind::kOptical && found->second != wanted.at(each.name))
            return Status::invalid_argument(
                concat("switch ", each.name, " is electrical, and needs ",
                       to_string(wanted.at(each.name)), " for its links"));
    }
    return Status::ok();
}

}  // namespace

std::map<int, Rank> ranks_at(const Description& description, const std::string& of_switch) {
    std::map<int, Rank> rank_at;
    for (const Device& device : description.devices)
        for (const Port& port : device.ports)
            if (port.of_switch == of_switch) rank_at[port.number] = device.rank;
    return rank_at;
}

Status check_phase(const Description& description, const Phase& phase) {
    if (!is_name(phase.name))
        return Status::invalid_argument(concat("a phase has a name: ", kNameRule));
    if (description.phase(phase.name) != nullptr)
        return Status::invalid_argument(concat("there is a phase ", phase.name, " already"));
    if (phase.links.size() > kMostLinks)
        return Status::invalid_argument(
            concat("phase ", phase.name, " has more than ", kMostLinks, " links"));
    for (const RankLink& link : phase.links)
        PCCL_TRY(check_link(phase, link, static_cast<Rank>(description.devices.size())));
    return circuits_of(description, phase).status();
}

Status check_circuits(const Description& description, const Phase& phase,
                      const CircuitsBySwitch& circuits) {
    PCCL_ASSIGN_OR_RETURN(const CircuitsBySwitch usual, circuits_of(description, phase));
    PCCL_TRY(check_switches(description, usual, circuits));
    PCCL_ASSIGN_OR_RETURN(const Links wanted, links_over(description, usual));
    PCCL_ASSIGN_OR_RETURN(const Links carried, links_over(description, circuits));
    if (carried == wanted) return Status::ok();
    return Status::invalid_argument(concat("lacks the links ", to_string(only_in(wanted, carried)),
                                           " of phase ", phase.name, ", and has ",
                                           to_string(only_in(carried, wanted)), " besides"));
}

}  // namespace pccl::cluster
