// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/audit_events.h"

#include "csrc/cluster/json_text.h"

namespace pccl::cluster {

std::string beginning_json(const std::string& from, const std::string& to,
                           const std::vector<SwitchMember>& members) {
    OrderedJson switches = OrderedJson::array();
    for (const SwitchMember& each : members)
        switches.push_back(
            {{"name", each.name}, {"from", in_json(each.from)}, {"to", in_json(each.to)}});
    return dumped({{"event", "begin"},
                   {"from", from.empty() ? "unknown" : from},
                   {"to", to},
                   {"switches", switches}});
}

std::string ending_json(const std::string& to, const Report& report) {
    OrderedJson event = {{"event", "end"}, {"to", to}};
    event.update(in_json(report));
    return dumped(event);
}

std::string adoption_json(const std::string& phase) {
    return dumped({{"event", "adopt"}, {"phase", phase}});
}

}  // namespace pccl::cluster
