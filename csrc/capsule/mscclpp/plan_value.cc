// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/plan_value.h"

namespace pccl::capsule::mscclpp {

Result<std::string> PlanValue::text(const char* key) const {
    if (!has(key)) return refuse("has no \"", key, "\"");
    const json& found = (*value_)[key];
    if (!found.is_string()) return refuse("\"", key, "\" is no text");
    return found.get<std::string>();
}

Status PlanValue::boolean(const char* key, bool& value) const {
    if (!has(key)) return Status::ok();
    const json& found = (*value_)[key];
    if (!found.is_boolean()) return refuse("\"", key, "\" is neither true nor false");
    value = found.get<bool>();
    return Status::ok();
}

Result<PlanValue> PlanValue::object(const char* key) const {
    if (!has(key)) return refuse("has no \"", key, "\"");
    const json& found = (*value_)[key];
    if (!found.is_object()) return refuse("\"", key, "\" is no object");
    return member(found);
}

Result<std::vector<PlanValue>> PlanValue::list(const char* key, std::size_t most) const {
    std::vector<PlanValue> all;
    if (!has(key)) return all;
    const json& found = (*value_)[key];
    if (!found.is_array() || found.size() > most)
        return refuse("\"", key, "\" is no list of at most ", most);
    for (const json& each : found) all.push_back(member(each));
    return all;
}

Result<std::vector<int>> PlanValue::numbers(const char* key, int most) const {
    PCCL_ASSIGN_OR_RETURN(const std::vector<PlanValue> all, list(key, kMostNamed));
    std::vector<int> found;
    for (const PlanValue& each : all) {
        found.emplace_back();
        PCCL_TRY(each.number(each.get(), key, 0, most, found.back()));
    }
    return found;
}

}  // namespace pccl::capsule::mscclpp
