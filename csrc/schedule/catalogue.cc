// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/catalogue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::schedule {
namespace {

// Returns whether a list of algorithms can contain the name: "all_reduce=mine,all_gather=ring".
bool is_name(std::string_view name) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return !name.empty() && name.find_first_not_of(kLetters) == std::string_view::npos;
}

}  // namespace

std::span<const SourcePtr> Catalogue::of(CollectiveKind kind) const {
    return by_kind_.at(static_cast<std::size_t>(kind));
}

SourcePtr Catalogue::find(std::string_view name, CollectiveKind kind) const {
    const auto sources = of(kind);
    const auto found = std::ranges::find_if(
        sources, [name](const SourcePtr& source) { return source->name == name; });
    return found == sources.end() ? nullptr : *found;
}

SourcePtr Catalogue::find(std::uint32_t tag, CollectiveKind kind) const {
    if (static_cast<std::size_t>(kind) >= by_kind_.size()) return nullptr;
    const auto sources = of(kind);
    const auto found =
        std::ranges::find(sources, tag, [](const auto& each) { return each->tag(); });
    return found == sources.end() ? nullptr : *found;
}

Status Catalogue::check_new(const ScheduleSource& source) const {
    if (!is_name(source.name))
        return Status::invalid_argument(concat("'", source.name,
                                               "' is no name of a schedule: it has letters a to "
                                               "z, digits and _"));
    std::vector<SourcePtr> known(of(source.kind).begin(), of(source.kind).end());
    for (const InParts& each : in_parts_)
        if (each.whole->kind == source.kind) known.push_back(each.whole);
    for (const SourcePtr& other : known)
        if (other->name == source.name || other->tag() == source.tag())
            return Status::invalid_argument(
                concat("there is a schedule of ", to_string(source.kind), " already with ",
                       other->name == source.name ? "the name " : "the programs of ", source.name));
    return Status::ok();
}

Status Catalogue::add(SourcePtr source) {
    PCCL_TRY(check_new(*source));
    by_kind_.at(static_cast<std::size_t>(source->kind)).push_back(std::move(source));
    return Status::ok();
}

Status Catalogue::add_in_parts(SourcePtr whole, std::vector<SourcePtr> parts) {
    PCCL_TRY(check_new(*whole));
    in_parts_.push_back({std::move(whole), std::move(parts)});
    return Status::ok();
}

SourcePtr Catalogue::part(std::string_view name) const {
    for (const InParts& each : in_parts_)
        for (const SourcePtr& part : each.parts)
            if (part->name == name) return part;
    return nullptr;
}

Status Catalogue::remove(std::string_view name) {
    std::size_t removed =
        std::erase_if(in_parts_, [name](const InParts& each) { return each.whole->name == name; });
    for (std::vector<SourcePtr>& sources : by_kind_)
        removed += std::erase_if(sources, [name](const SourcePtr& source) {
            return source->sizes && source->name == name;
        });
    if (removed > 0) return Status::ok();
    return Status::invalid_argument(concat("no schedule ", name, " was loaded"));
}

std::vector<SourcePtr> Catalogue::loaded() const {
    std::vector<SourcePtr> found;
    for (const std::vector<SourcePtr>& sources : by_kind_)
        std::ranges::copy_if(sources, std::back_inserter(found),
                             [](const SourcePtr& source) { return source->sizes.has_value(); });
    for (const InParts& each : in_parts_) found.push_back(each.whole);
    return found;
}

}  // namespace pccl::schedule
