// What one configuration has that another has not, as people read it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::netconf {

struct Difference {
    std::string text;        // "adds pair (ingress 1, egress 2)"
    std::string name_space;  // of the element that differs
    friend bool operator==(const Difference&, const Difference&) = default;
};

/// Compares two <data> elements, whatever the order of what is in them. Takes time in proportion to
/// their size. Values are shown of one namespace alone: those of others may be secrets.
[[nodiscard]] PCCL_API std::vector<Difference> differences(const sys::XmlElement& before,
                                                           const sys::XmlElement& after,
                                                           std::string_view shown_namespace);
/// Returns the first of them in one line, and how many more there are.
[[nodiscard]] PCCL_API std::string to_string(const std::vector<Difference>& these);

}  // namespace pccl::netconf
