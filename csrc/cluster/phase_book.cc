// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/phase_book.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/cluster/model/fit.h"
#include "csrc/cluster/plan.h"

namespace pccl::cluster {

Status PhaseBook::add_phase(Phase phase) {
    PCCL_TRY(check_phase(description_, phase));
    description_.phases.push_back(std::move(phase));
    return Status::ok();
}

Status PhaseBook::add_transform(const std::string& from, const std::string& to,
                                Transform transform) {
    PCCL_ASSIGN_OR_RETURN(const Phase* const origin, find_phase(description_, from));
    PCCL_ASSIGN_OR_RETURN(const Phase* const target, find_phase(description_, to));
    const std::string what = concat("a transform from ", from, " to ", to);
    if (from == to) return Status::invalid_argument(concat(what, " leads nowhere"));
    if (!transform) return Status::invalid_argument(concat(what, " is no function"));
    if (find(from, to) != nullptr)
        return Status::invalid_argument(concat("there is ", what, " already"));
    PCCL_ASSIGN_OR_RETURN(const auto circuits, circuits_of(description_, *origin));
    PCCL_TRY(transformed(transform, circuits, *target).status());
    transforms_[{from, to}] = std::move(transform);
    return Status::ok();
}

const Transform* PhaseBook::find(const std::string& from, const std::string& to) const {
    const auto found = transforms_.find({from, to});
    return found == transforms_.end() ? nullptr : &found->second;
}

Result<CircuitsBySwitch> PhaseBook::transformed(const Transform& transform,
                                                const CircuitsBySwitch& from,
                                                const Phase& to) const {
    const std::string what = concat("the transform to ", to.name);
    auto circuits = transform(from);
    PCCL_TRY(circuits.status().with_context(what));
    for (auto& [name, each] : *circuits) std::ranges::sort(each);
    PCCL_TRY(check_circuits(description_, to, *circuits).with_context(what));
    return circuits;
}

Result<CircuitsBySwitch> PhaseBook::circuits_after(const std::string& from,
                                                   const CircuitsBySwitch& circuits,
                                                   const Phase& to) const {
    if (from == to.name) return circuits;
    const Transform* const transform = find(from, to.name);
    if (transform == nullptr) return circuits_of(description_, to);
    return transformed(*transform, circuits, to);
}

bool PhaseBook::may_have(const Phase& phase, const CircuitsBySwitch& circuits) const {
    const auto has = [&](const Result<CircuitsBySwitch>& these) {
        return these.is_ok() && *these == circuits;
    };
    if (has(circuits_of(description_, phase))) return true;
    return std::ranges::any_of(transforms_, [&](const auto& each) {
        const auto& [way, transform] = each;
        if (way.second != phase.name) return false;
        const auto before = circuits_of(description_, *description_.phase(way.first));
        return before.is_ok() && has(transformed(transform, *before, phase));
    });
}

std::string PhaseBook::phase_with(const CircuitsBySwitch& circuits) const {
    const auto found = std::ranges::find_if(
        description_.phases, [&](const Phase& each) { return may_have(each, circuits); });
    return found == description_.phases.end() ? std::string() : found->name;
}

}  // namespace pccl::cluster
