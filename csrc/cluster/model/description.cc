// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/model/description.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/cluster/model/vlans.h"

namespace pccl::cluster {
namespace {

using PortKey = std::pair<std::string, int>;

/// Allocation of the transmitters and receivers at ports of optical switches.
class PortBook {
   public:
    explicit PortBook(const Description& description) : description_(description) {
        for (const SwitchDescription& each : description.switches)
            if (each.kind != SwitchKind::kOptical) shared_.insert(each.name);
    }

    /// Allocates the two ports of a link; for a duplex link, in both directions.
    std::optional<std::pair<Port, Port>> take(const RankLink& link, bool both_ways) {
        for (const Port& from : ports_of(link.from))
            for (const Port& to : ports_of(link.to)) {
                if (from.of_switch != to.of_switch) continue;
                if (shared_.contains(from.of_switch)) return std::pair{from, to};
                if (!is_free(from, to) || (both_ways && !is_free(to, from))) continue;
                mark(from, to);
                if (both_ways) mark(to, from);
                return std::pair{from, to};
            }
        return std::nullopt;
    }

   private:
    [[nodiscard]] const std::vector<Port>& ports_of(Rank rank) const {
        return description_.devices[static_cast<std::size_t>(rank)].ports;
    }
    [[nodiscard]] bool is_free(const Port& from, const Port& to) const {
        return !sending_.contains({from.of_switch, from.number}) &&
               !receiving_.contains({to.of_switch, to.number});
    }
    void mark(const Port& from, const Port& to) {
        sending_.insert({from.of_switch, from.number});
        receiving_.insert({to.of_switch, to.number});
    }

    const Description& description_;
    std::set<std::string> shared_;  // switches whose ports serve many links at a time
    std::set<PortKey> sending_;
    std::set<PortKey> receiving_;
};

Status no_port(const Phase& phase, const RankLink& link) {
    return Status::invalid_argument(
        concat("phase ", phase.name, ": no switch has a free port of both ranks for the link ",
               link.from, " -> ", link.to, "; give them more ports, or the phase fewer links"));
}

}  // namespace

const Phase* Description::phase(std::string_view name) const {
    const auto found = std::find_if(phases.begin(), phases.end(),
                                    [&](const Phase& each) { return each.name == name; });
    return found == phases.end() ? nullptr : &*found;
}

const SwitchDescription& Description::switch_called(std::string_view name) const {
    return *std::find_if(switches.begin(), switches.end(),
                         [&](const SwitchDescription& each) { return each.name == name; });
}

std::vector<std::string_view> Description::phase_names() const {
    std::vector<std::string_view> names;
    names.reserve(phases.size());
    for (const Phase& each : phases) names.emplace_back(each.name);
    return names;
}

Result<CircuitsBySwitch> circuits_of(const Description& description, const Phase& phase) {
    CircuitsBySwitch circuits;
    for (const SwitchDescription& each : description.switches) circuits[each.name];
    PortBook book(description);
    std::map<std::string, Vlans> vlans;
    for (std::size_t i = 0; i < phase.links.size(); ++i) {
        const RankLink& link = phase.links[i];
        const RankLink back{link.to, link.from};
        const bool both_ways = i + 1 < phase.links.size() && phase.links[i + 1] == back;
        const auto ports = book.take(link, both_ways);
        if (!ports) return no_port(phase, link);
        const auto& [one, other] = *ports;
        if (both_ways) ++i;
        if (description.switch_called(one.of_switch).kind != SwitchKind::kOptical) {
            vlans[one.of_switch].join(one.number, other.number);
            continue;
        }
        Circuits& of_switch = circuits[one.of_switch];
        of_switch.push_back({one.number, other.number});
        if (both_ways) of_switch.push_back({other.number, one.number});
    }
    for (const auto& [name, each] : vlans) {
        const bool has_vlans = description.switch_called(name).kind == SwitchKind::kVlans;
        circuits[name] = has_vlans ? each.members() : each.ports();
    }
    for (auto& [name, each] : circuits) std::sort(each.begin(), each.end());
    return circuits;
}

}  // namespace pccl::cluster
