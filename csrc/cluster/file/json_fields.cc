// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/file/json_fields.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text/nearest.h"
#include "csrc/base/text/printable.h"
#include "csrc/base/text/text.h"
#include "csrc/cluster/model/name.h"

namespace pccl::cluster {
namespace {

constexpr std::size_t kMostShown = 48;

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

}  // namespace

JsonFields::JsonFields(const Json& object, std::string place)
    : object_(object), place_(std::move(place)) {
    if (!object_.is_object()) status_ = refused(place_, "must be a mapping of keys to values");
}

const Json* JsonFields::member(std::string_view key) {
    known_.push_back(key);
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::number(std::string_view key, long& into, const NumberRange& range) {
    const Json* const value = member(key);
    if (value == nullptr) return;
    const bool fits = value->is_number_integer() &&
                      (!value->is_number_unsigned() || value->get<std::uint64_t>() <= INT64_MAX);
    const long number = fits ? value->get<long>() : 0;
    if (!fits || number < range.low || number > range.high)
        return refuse(key, concat("must be a whole number from ", range.low, " to ", range.high));
    into = number;
}

void JsonFields::flag(std::string_view key, bool& into) {
    const Json* const value = member(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return refuse(key, "must be true or false");
    into = value->get<bool>();
}

void JsonFields::text(std::string_view key, std::string& into) {
    const Json* const value = member(key);
    if (value == nullptr) return;
    if (!value->is_string()) return refuse(key, "must be text");
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() > kMostText || std::any_of(text.begin(), text.end(), is_control))
        return refuse(key, concat("must be at most ", kMostText, " bytes, on one line"));
    into = text;
}

void JsonFields::name(std::string_view key, std::string& into) {
    std::string text = into;
    this->text(key, text);
    if (status_.is_ok() && !is_name(text))
        return refuse(key, concat("must be a name: ", kNameRule));
    into = std::move(text);
}

const Json& JsonFields::list(std::string_view key) {
    static const Json none = Json::array();
    const Json* const value = member(key);
    if (value == nullptr) return none;
    if (value->is_array() && value->size() <= kMostItems) return *value;
    refuse(key, concat("must be a list of at most ", kMostItems));
    return none;
}

void JsonFields::refuse(std::string_view key, std::string_view what) {
    if (status_.is_ok()) status_ = refused(place_of(key), what);
}

std::string JsonFields::place_of(std::string_view key) const {
    return place_.ends_with(':') ? concat(place_, " ", key) : concat(place_, ".", key);
}

Status JsonFields::finish() {
    PCCL_TRY(status_);
    for (const auto& [key, value] : object_.items()) {
        if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
        const std::string meant = did_you_mean(key, known_);
        return refused(place_of(printable(key, kMostShown)),
                       concat("is no known key", meant.empty() ? "" : "; ", meant));
    }
    return Status::ok();
}

Status refused(std::string_view place, std::string_view what) {
    return Status::invalid_argument(concat(place, place.ends_with(':') ? " " : ": ", what));
}

}  // namespace pccl::cluster
