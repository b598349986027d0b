// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/xml/xml_bounds.h"

#include <algorithm>
#include <array>
#include <vector>

#include "csrc/base/text/text.h"

namespace pccl::sys {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kLongestReference = 16;  // behind the &, with the ;
constexpr std::string_view kNameEnds = " \t\r\n/>=<\"'";

class BoundsScanner {
   public:
    BoundsScanner(std::string_view text, const XmlReaderLimits& limits)
        : text_(text), limits_(limits) {}

    Status scan() {
        for (skip_text(); at_ < text_.size(); skip_text())
            PCCL_TRY(begins("&") ? take_reference() : take_markup());
        return Status::ok();
    }

   private:
    void skip_text() { at_ = std::min(text_.find_first_of("<&", at_), text_.size()); }

    Status take_markup() {
        if (begins("</")) return take_end_tag();
        if (!begins("<!") && !begins("<?")) return take_start_tag();
        if (++others_ > limits_.others)
            return refuse("more than ", limits_.others, " comments and the like");
        if (begins("<!--")) return take_until("-->", 4, limits_.markup);
        if (begins("<![CDATA[")) return take_until("]]>", 9, limits_.bytes);
        return begins("<?") ? take_until("?>", 2, limits_.markup) : malformed();
    }

    /// Checks a reference. Without a document type declaration there are no other entities.
    Status take_reference() {
        constexpr std::array kEntities = {"lt", "gt", "amp", "quot", "apos"};
        const std::string_view rest = text_.substr(at_ + 1, kLongestReference);
        const std::string_view name = rest.substr(0, rest.find(';'));
        if (name.size() == rest.size()) return malformed();
        if (!name.starts_with('#') && std::ranges::find(kEntities, name) == kEntities.end())
            return malformed();
        at_ += name.size() + 2;
        return Status::ok();
    }

    /// Moves behind `end`, which is searched behind the first `opening` bytes.
    Status take_until(std::string_view end, std::size_t opening, std::size_t longest) {
        const std::size_t found = text_.find(end, at_ + opening);
        if (std::min(found, text_.size()) - at_ > longest) return too_long();
        if (found == std::string_view::npos) return malformed();
        at_ = found + end.size();
        return Status::ok();
    }

    Status take_end_tag() {
        PCCL_TRY(take_until(">", 2, limits_.markup));
        if (declared_.empty()) return malformed();
        close_element();
        return Status::ok();
    }

    Status take_start_tag() {
        const std::size_t begin = at_++;
        PCCL_ASSIGN_OR_RETURN(const std::string_view name, take_name());
        PCCL_TRY(open_element());
        std::size_t own = 0;
        std::size_t prefixes = prefix_bytes(name);
        for (skip_blanks(); !begins(">") && !begins("/>"); skip_blanks()) {
            if (at_ - begin > limits_.markup) return too_long();
            PCCL_TRY(count_attribute(++own));
            PCCL_TRY(take_attribute(prefixes));
        }
        if (at_ - begin > limits_.markup) return too_long();
        PCCL_TRY(look_up(prefixes));
        const bool is_empty = begins("/>");
        at_ += is_empty ? 2 : 1;
        if (is_empty) close_element();
        return Status::ok();
    }

    /// Returns the approximate bytes that a prefix lookup compares with each declaration.
    static std::size_t prefix_bytes(std::string_view name) {
        constexpr std::size_t kAtLeast = 8;
        const std::size_t colon = name.find(':');
        return kAtLeast + (colon == std::string_view::npos ? 0 : colon);
    }

    Status look_up(std::size_t bytes) {
        lookups_ += bytes * in_scope_;
        return lookups_ <= limits_.lookups ? Status::ok()
                                           : refuse("more prefixes than can be looked up among ",
                                                    in_scope_, " declarations of namespaces");
    }

    Status count_attribute(std::size_t own) {
        if (own > limits_.attributes_of_one)
            return refuse("an element with more than ", limits_.attributes_of_one, " attributes");
        if (++attributes_ > limits_.attributes)
            return refuse("more than ", limits_.attributes, " attributes");
        return Status::ok();
    }

    /// Checks an attribute and adds the bytes of its prefix to `prefixes`.
    Status take_attribute(std::size_t& prefixes) {
        PCCL_ASSIGN_OR_RETURN(const std::string_view name, take_name());
        skip_blanks();
        if (!begins("=")) return malformed();
        ++at_;
        skip_blanks();
        if (!begins("\"") && !begins("'")) return malformed();
        const std::size_t value = at_ + 1;
        PCCL_TRY(take_until(text_.substr(at_, 1), 1, limits_.markup));
        if (name == "xmlns" || name.starts_with("xmlns:")) return declare(at_ - 1 - value);
        if (name.find(':') != std::string_view::npos) prefixes += prefix_bytes(name);
        if (name == "xml:id" && ++ids_ > limits_.ids)
            return refuse("more than ", limits_.ids, " attributes xml:id");
        return Status::ok();
    }

    Status declare(std::size_t bytes) {
        if (bytes > limits_.name)
            return refuse("a namespace of more than ", limits_.name, " bytes");
        ++declared_.back();
        if (++in_scope_ > limits_.declarations)
            return refuse("more than ", limits_.declarations,
                          " declarations of namespaces at once");
        return Status::ok();
    }

    Status open_element() {
        if (++elements_ > limits_.elements)
            return refuse("more than ", limits_.elements, " elements");
        if (declared_.size() >= limits_.depth)
            return refuse("elements nested deeper than ", limits_.depth);
        declared_.push_back(0);
        return Status::ok();
    }

    void close_element() {
        in_scope_ -= declared_.back();
        declared_.pop_back();
    }

    Result<std::string_view> take_name() {
        const std::size_t begin = at_;
        at_ = std::min(text_.find_first_of(kNameEnds, at_), text_.size());
        if (at_ == begin) return malformed();
        if (at_ - begin > limits_.name)
            return refuse("a name of more than ", limits_.name, " bytes");
        return text_.substr(begin, at_ - begin);
    }

    void skip_blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }
    [[nodiscard]] bool begins(std::string_view with) const {
        return text_.substr(at_, with.size()) == with;
    }

    [[nodiscard]] std::string line() const {
        const std::string_view before = text_.substr(0, at_);
        return concat(" (line ", 1 + std::count(before.begin(), before.end(), '\n'), ")");
    }
    template <typename... Parts>
    [[nodiscard]] Status refuse(const Parts&... parts) const {
        return Status::invalid_argument(concat("XML has ", parts..., line()));
    }
    [[nodiscard]] Status malformed() const {
        return Status::invalid_argument(concat("XML is not well-formed", line()));
    }
    [[nodiscard]] Status too_long() const {
        return refuse("a tag, comment or instruction of more than ", limits_.markup, " bytes");
    }

    std::string_view text_;
    const XmlReaderLimits& limits_;
    std::size_t at_ = 0;
    std::vector<std::size_t> declared_;  // namespaces, by open element
    std::size_t in_scope_ = 0;           // their sum
    std::size_t elements_ = 0;
    std::size_t others_ = 0;
    std::size_t attributes_ = 0;
    std::size_t ids_ = 0;
    std::size_t lookups_ = 0;
};

}  // namespace

Status check_xml_bounds(std::string_view text, const XmlReaderLimits& limits) {
    if (text.size() > limits.bytes)
        return Status::invalid_argument(concat("XML has more than ", limits.bytes, " bytes"));
    // The text is read as UTF-8 regardless of its declaration, so that this check finds every one.
    // Without a document type declaration no entity can be defined, and an undefined one is not
    // well-formed.
    if (text.find("<!DOCTYPE") != std::string_view::npos)
        return Status::invalid_argument("XML has a document type declaration, which is refused");
    return BoundsScanner(text, limits).scan();
}

}  // namespace pccl::sys
