// SPDX-License-Identifier: Apache-2.0

// Reader of untrusted XML by libxml2: strict, with namespaces, without DTDs, entities or network.
//
// The library is opened at its first use, since nothing else needs it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/sys/xml/xml_bounds.h"

namespace pccl::sys {

/// A value: an element with its content.
struct PCCL_API XmlElement {
    struct XmlAttribute {
        std::string name;  // without its prefix
        std::string name_space;
        std::string value;
        friend bool operator==(const XmlAttribute&, const XmlAttribute&) = default;
    };

    std::string name;  // without its prefix
    std::string name_space;
    std::vector<XmlAttribute> attributes;  // without declarations of namespaces
    std::string text;                      // all text directly in it
    std::vector<XmlElement> children;

    /// Returns the first child of that name; null for none.
    [[nodiscard]] const XmlElement* child(std::string_view of_name) const;
    /// Returns the text of that child without white space around it; empty for none.
    [[nodiscard]] std::string_view text_of(std::string_view of_name) const;
    /// Returns the value of an attribute; null where it is missing.
    [[nodiscard]] const std::string* attribute(std::string_view of_name) const;
    friend bool operator==(const XmlElement&, const XmlElement&) = default;
};

/// Returns `text` without white space around it.
[[nodiscard]] PCCL_API std::string_view trimmed(std::string_view text);
/// Returns `text` escaped for use between tags and in attributes.
[[nodiscard]] PCCL_API std::string escaped_xml(std::string_view text);
/// Returns the root of a document in UTF-8. Checks the limits before libxml2 gets the text.
/// kInvalidArgument names the fault; kUnsupported where libxml2 is not installed, with the way to
/// install it.
[[nodiscard]] PCCL_API Result<XmlElement> read_xml(std::string_view text,
                                                   const XmlReaderLimits& limits = {});

}  // namespace pccl::sys
