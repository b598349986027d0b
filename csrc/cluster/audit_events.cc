// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/audit_events.h"

#include <nlohmann/json.hpp>

namespace pccl::cluster {
namespace {

using OrderedJson = nlohmann::ordered_json;

double in_ms(Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

OrderedJson in_json(const Circuits& circuits) {
    OrderedJson list = OrderedJson::array();
    for (const Circuit& each : circuits) list.push_back({each.ingress, each.egress});
    return list;
}

OrderedJson in_json(const MemberReport& member) {
    OrderedJson requests = OrderedJson::array();
    for (const Exchange& each : member.exchanges)
        requests.push_back({{"operation", each.operation},
                            {"message_id", each.message_id},
                            {"ms", in_ms(each.took)},
                            {"outcome", each.outcome}});
    OrderedJson steps = OrderedJson::array();
    for (const StepTime& each : member.steps)
        steps.push_back({{"step", to_string(each.step)}, {"ms", in_ms(each.took)}});
    return {{"name", member.name},
            {"fault", member.status.message()},
            {"found", in_json(member.found)},
            {"discarded", member.discarded},
            {"startup", member.startup},
            {"steps", steps},
            {"requests", requests}};
}

template <typename T>
OrderedJson list_of(const std::vector<T>& values) {
    OrderedJson list = OrderedJson::array();
    for (const T& each : values) list.push_back(in_json(each));
    return list;
}

OrderedJson in_json(const Report& report) {
    return {{"outcome", to_string(report.ending)}, {"code", to_string(report.reason.code())},
            {"reason", report.reason.message()},   {"total_ms", in_ms(report.total)},
            {"dark_ms", in_ms(report.dark)},       {"unrecorded", report.unrecorded.message()},
            {"switches", list_of(report.members)}};
}

/// Returns one line of ASCII, because text from a device need not be UTF-8.
std::string dumped(const OrderedJson& json) {
    return json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

}  // namespace

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
