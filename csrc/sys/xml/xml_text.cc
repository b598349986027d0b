// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/xml/xml_text.h"

#include <algorithm>
#include <cstddef>

namespace pccl::sys {
namespace {

/// Counts the elements and measures their depth.
class Census : public pugi::xml_tree_walker {
   public:
    bool for_each(pugi::xml_node& node) override {
        deepest_ = std::max(deepest_, depth());
        if (node.type() == pugi::node_element) ++elements_;
        return !is_too_large();
    }
    [[nodiscard]] bool is_too_large() const {
        return elements_ > XmlLimits::kElements || deepest_ > XmlLimits::kDepth;
    }

   private:
    std::size_t elements_ = 0;
    int deepest_ = 0;
};

}  // namespace

Status XmlText::check_size() const {
    if (text_.size() <= XmlLimits::kBytes) return Status::ok();
    return Status::invalid_argument(
        concat(name_, ": has ", text_.size(), " bytes; at most ", XmlLimits::kBytes, " are read"));
}

Result<pugi::xml_node> XmlText::load() {
    PCCL_TRY(check_size());
    const pugi::xml_parse_result parsed =
        document_.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!parsed)
        return Status::invalid_argument(
            concat(place(parsed.offset), ": this is no XML: ", parsed.description()));
    const pugi::xml_node root = document_.document_element();
    if (!root) return Status::invalid_argument(concat(name_, ": holds no XML element"));
    Census census;
    document_.traverse(census);
    if (census.is_too_large())
        return Status::invalid_argument(concat(name_, ": more than ", XmlLimits::kElements,
                                               " elements, or nested deeper than ",
                                               XmlLimits::kDepth));
    return root;
}

std::string XmlText::place(std::ptrdiff_t offset) const {
    const auto end = text_.begin() + std::clamp<std::ptrdiff_t>(offset, 0, std::ssize(text_));
    return concat(name_, ":", 1 + std::count(text_.begin(), end, '\n'));
}

std::string shown(std::string_view text) {
    constexpr std::size_t kLongest = 40;
    std::string result(text.substr(0, kLongest));
    std::replace_if(result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return text.size() > kLongest ? result + "..." : result;
}

}  // namespace pccl::sys
