// SPDX-License-Identifier: Apache-2.0

// Differences between two configurations, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::netconf {

struct Difference {
    std::string text;        // "adds pair (ingress 1, egress 2)"
    std::string name_space;  // of the element that differs
    friend bool operator==(const Difference&, const Difference&) = default;
};

/// Compares two <data> elements, without regard to the order of their children. Takes time in
/// proportion to their size. The text contains values of one namespace only: those of others may be
/// secrets.
[[nodiscard]] PCCL_API std::vector<Difference> differences(const sys::XmlElement& before,
                                                           const sys::XmlElement& after,
                                                           std::string_view shown_namespace);
/// Returns the first differences in one line, and the number of further ones.
[[nodiscard]] PCCL_API std::string to_string(const std::vector<Difference>& these);

}  // namespace pccl::netconf
