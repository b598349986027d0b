#include "csrc/cluster/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "csrc/base/nearest.h"
#include "csrc/base/text.h"
#include "csrc/cluster/drivers/dialects.h"

namespace pccl::cluster {
namespace {

/// Commit and reading back take 1 to 6 ms on netconfd, with up to eight switches and 64 circuits.
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

std::map<int, Rank> ranks_at(const Description& description, const std::string& of_switch) {
    std::map<int, Rank> rank_at;
    for (const Device& device : description.devices)
        for (const Port& port : device.ports)
            if (port.of_switch == of_switch) rank_at[port.number] = device.rank;
    return rank_at;
}

/// Links of `origin` that lose what carries them on this switch.
Links links_over(const Description& description, const Switch& of, const Circuits& gone,
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

std::string xml_for(const Switch& of, const Change& change) {
    if (of.is_in_process) return {};
    return edit_xml(*find_dialect(of.dialect), change.removed_for_good(), change.add);
}

}  // namespace

Result<const Phase*> find_phase(const Description& description, const std::string& name) {
    const Phase* const found = description.phase(name);
    if (found != nullptr) return found;
    const auto names = description.phase_names();
    const std::string_view meant = nearest(std::string_view(name).substr(0, 64), names);
    std::string known;
    for (const std::string_view each : names) known += concat(known.empty() ? "" : ", ", each);
    return Status::invalid_argument(
        concat("there is no phase ", name,
               meant.empty() ? concat("; phases are: ", known.empty() ? "none" : known)
                             : concat("; did you mean ", meant)));
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
    Plan plan{.from = from, .to = to};
    plan.lost = only_in(sorted(origin), sorted(target));
    plan.gained = only_in(sorted(target), sorted(origin));
    Links moved;
    for (const Switch& each : description.switches) {
        const Change change = change_between(before.at(each.name), after.at(each.name));
        if (change.is_empty()) continue;
        plan.estimate = std::max<std::chrono::duration<double>>(
            plan.estimate, each.settle + (each.is_in_process ? kControl * 0 : kControl));
        const Links broken = links_over(description, each, change.remove, origin);
        moved.insert(moved.end(), broken.begin(), broken.end());
        plan.switches.push_back(
            {each.name, before.at(each.name), after.at(each.name), change, xml_for(each, change)});
    }
    std::sort(moved.begin(), moved.end());
    plan.dark = only_in(moved, plan.lost);
    return plan;
}

}  // namespace pccl::cluster
