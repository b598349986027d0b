// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/json_text.h"

namespace pccl::cluster {
namespace {

double in_ms(Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

OrderedJson in_json(const std::vector<RankLink>& links) {
    OrderedJson list = OrderedJson::array();
    for (const RankLink& each : links) list.push_back({each.from, each.to});
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

OrderedJson in_json(const SwitchPlan& plan) {
    return {{"name", plan.name},
            {"remove", in_json(plan.change.remove)},
            {"add", in_json(plan.change.add)},
            {"xml", plan.xml}};
}

OrderedJson in_json(const Device& device) {
    OrderedJson ports = OrderedJson::array();
    for (const Port& each : device.ports) ports.push_back({each.of_switch, each.number});
    return {{"name", device.name}, {"rank", device.rank}, {"ports", ports}};
}

OrderedJson in_json(const SwitchDescription& of) {
    const Management& management = of.management;
    return {{"name", of.name},
            {"dialect", of.dialect},
            {"host", of.is_in_process ? std::string{} : management.host},
            {"port", of.is_in_process ? 0 : management.port},
            {"settle_ms", of.settle.count()}};
}

template <typename T>
OrderedJson list_of(const std::vector<T>& values) {
    OrderedJson list = OrderedJson::array();
    for (const T& each : values) list.push_back(in_json(each));
    return list;
}

}  // namespace

OrderedJson in_json(const Circuits& circuits) {
    OrderedJson list = OrderedJson::array();
    for (const Circuit& each : circuits) list.push_back({each.ingress, each.egress});
    return list;
}

OrderedJson in_json(const Report& report) {
    return {{"outcome", to_string(report.ending)}, {"code", to_string(report.reason.code())},
            {"reason", report.reason.message()},   {"total_ms", in_ms(report.total)},
            {"dark_ms", in_ms(report.dark)},       {"unrecorded", report.unrecorded.message()},
            {"switches", list_of(report.members)}};
}

OrderedJson in_json(const Plan& plan) {
    return {{"source", plan.from},
            {"target", plan.to},
            {"switches", list_of(plan.switches)},
            {"moved", in_json(plan.dark)},
            {"lost", in_json(plan.lost)},
            {"gained", in_json(plan.gained)},
            {"seconds", plan.estimate.count()}};
}

OrderedJson in_json(const Inspection& inspection) {
    OrderedJson switches = OrderedJson::array();
    for (const Sight& each : inspection.switches)
        switches.push_back({{"name", each.name},
                            {"fault", each.status.message()},
                            {"circuits", in_json(each.circuits)},
                            {"dark", each.dark}});
    return {{"phase", inspection.phase}, {"switches", switches}};
}

OrderedJson in_json(const Description& description) {
    OrderedJson phases = OrderedJson::array();
    for (const Phase& each : description.phases)
        phases.push_back(
            {{"name", each.name}, {"links", in_json(each.links)}, {"forward", each.forwards}});
    return {{"devices", list_of(description.devices)},
            {"switches", list_of(description.switches)},
            {"phases", phases}};
}

OrderedJson in_json(const Progress& progress) {
    OrderedJson switches = OrderedJson::array();
    for (const SwitchProgress& each : progress.switches)
        switches.push_back({{"name", each.name},
                            {"doing", each.doing},
                            {"done", each.is_done},
                            {"fault", each.fault.message()}});
    return {{"part", progress.part}, {"switches", switches}};
}

std::string dumped(const OrderedJson& json) {
    return json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

}  // namespace pccl::cluster
