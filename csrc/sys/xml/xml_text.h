// SPDX-License-Identifier: Apache-2.0

// Untrusted XML, loaded within bounds by pugixml, with positions for messages.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/text/text.h"

namespace pccl::sys {

struct XmlLimits {
    static constexpr std::size_t kBytes = 8U << 20U;
    static constexpr std::size_t kElements = 1U << 16U;
    static constexpr int kDepth = 32;
    static constexpr std::size_t kText = 4096;
};

/// An XML document in memory, with positions for messages.
class XmlText {
   public:
    /// Takes the text, and its `name` for messages. Both must outlive this object.
    XmlText(std::string_view text, std::string_view name) : text_(text), name_(name) {}

    /// Parses the text and returns its root element; an error names the line. The number and depth
    /// of elements are limited.
    [[nodiscard]] Result<pugi::xml_node> load();

    /// Returns kInvalidArgument "<name>:<line>: <parts>".
    template <typename... Parts>
    [[nodiscard]] Status refuse(pugi::xml_node node, const Parts&... parts) const {
        return Status::invalid_argument(concat(place(node), ": ", parts...));
    }
    [[nodiscard]] std::string place(pugi::xml_node node) const {
        return place(node.offset_debug());
    }
    /// Returns "<name>:<line>" for a node's offset_debug().
    [[nodiscard]] std::string place(std::ptrdiff_t offset) const;

   private:
    [[nodiscard]] Status check_size() const;

    std::string_view text_;
    std::string_view name_;
    pugi::xml_document document_;
};

/// Returns a value in a form fit for messages: cut short, and without characters that could disturb
/// a terminal.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace pccl::sys
