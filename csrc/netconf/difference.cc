// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/difference.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/printable.h"
#include "csrc/base/text/text.h"

namespace pccl::netconf {
namespace {

using sys::XmlElement;

constexpr int kMostDescents = 8;  // each compares everything below once more
constexpr std::size_t kMostDifferences = 4;
constexpr std::size_t kLongestDifference = 120;

/// Returns equal values for elements that differ only in the order of their children, or in
/// attributes, which configurations do not use.
std::size_t digest(const XmlElement& element) {
    std::vector<std::size_t> parts;
    parts.reserve(element.children.size() + 3);
    for (const XmlElement& each : element.children) parts.push_back(digest(each));
    std::ranges::sort(parts);
    const std::hash<std::string_view> hash;
    parts.push_back(hash(element.name));
    parts.push_back(hash(element.name_space));
    if (element.children.empty()) parts.push_back(hash(sys::trimmed(element.text)));
    return hash({reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(std::size_t)});
}

/// Returns "pair (ingress 1, egress 2)", "enabled true"; without values of other namespaces, "user
/// (name)".
std::string described(const XmlElement& element, std::string_view shown_namespace) {
    std::string inside;
    if (!element.children.empty())
        inside = concat(
            "(",
            some_of(element.children, kMostDifferences,
                    [&](const XmlElement& each) { return described(each, shown_namespace); }),
            ")");
    else if (element.name_space == shown_namespace)
        inside = sys::trimmed(element.text);
    return inside.empty() ? element.name : concat(element.name, " ", inside);
}

/// Children of an element, with their digests.
using Children = std::vector<std::pair<std::size_t, const XmlElement*>>;

Children children_of(const XmlElement& element) {
    Children children;
    children.reserve(element.children.size());
    for (const XmlElement& each : element.children) children.emplace_back(digest(each), &each);
    std::ranges::sort(children, {}, &Children::value_type::first);
    return children;
}

/// Returns the elements of `all` that have no equal in `others`, by name and in document order.
std::map<std::string_view, std::vector<const XmlElement*>> only_in(const Children& all,
                                                                   const Children& others) {
    Children left;
    std::ranges::set_difference(all, others, std::back_inserter(left), {},
                                &Children::value_type::first, &Children::value_type::first);
    std::ranges::sort(left, std::less(), &Children::value_type::second);
    std::map<std::string_view, std::vector<const XmlElement*>> by_name;
    for (const auto& [what, element] : left) by_name[element->name].push_back(element);
    return by_name;
}

/// Returns whether there is exactly one element, and it contains more than leaves: it is compared
/// part by part. An element with leaves only, like an entry of a list, differs as a whole.
bool is_container(const std::vector<const XmlElement*>& these) {
    return these.size() == 1 &&
           std::ranges::any_of(these.front()->children,
                               [](const XmlElement& each) { return !each.children.empty(); });
}

class Comparison {
   public:
    explicit Comparison(std::string_view shown_namespace) : shown_namespace_(shown_namespace) {}

    void compare(const XmlElement& before, const XmlElement& after, int descents) {
        const Children old_ones = children_of(before);
        const Children new_ones = children_of(after);
        auto removed = only_in(old_ones, new_ones);
        auto added = only_in(new_ones, old_ones);
        for (auto& [name, elements] : added) {
            const auto old = removed.find(name);
            const bool is_same = descents > 0 && old != removed.end() &&
                                 is_container(old->second) && is_container(elements);
            if (is_same) {
                compare(*old->second.front(), *elements.front(), descents - 1);
                removed.erase(old);
                continue;
            }
            for (const XmlElement* each : elements) add("adds", *each);
        }
        for (const auto& [name, elements] : removed)
            for (const XmlElement* each : elements) add("removes", *each);
    }

    std::vector<Difference> found;

   private:
    void add(std::string_view what, const XmlElement& element) {
        const std::string text = described(element, shown_namespace_);
        found.push_back({.text = concat(what, " ", printable(text, kLongestDifference)),
                         .name_space = element.name_space});
    }

    const std::string_view shown_namespace_;
};

}  // namespace

std::vector<Difference> differences(const XmlElement& before, const XmlElement& after,
                                    std::string_view shown_namespace) {
    Comparison comparison(shown_namespace);
    comparison.compare(before, after, kMostDescents);
    return std::move(comparison.found);
}

std::string to_string(const std::vector<Difference>& these) {
    return some_of(these, kMostDifferences, [](const Difference& each) { return each.text; });
}

}  // namespace pccl::netconf
