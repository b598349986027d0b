// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/xml/xml_reader.h"

#include <dlfcn.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "csrc/base/scope_exit.h"
#include "csrc/base/text/printable.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/library.h"

namespace pccl::sys {
namespace {

// The functions are declared here so that no build needs libxml2's headers. They belong to its
// stable interface.
using Reader = void*;
using Text = const unsigned char*;
constexpr int kOptions = 1 << 5 | 1 << 6 | 1 << 11;  // NOERROR, NOWARNING, NONET
enum XmlNode { kElement = 1, kText = 3, kCData = 4, kSignificantSpace = 14, kEndOfElement = 15 };

struct XmlFunctions {
    void (*initialise)() = nullptr;
    Reader (*open)(const char*, int, const char*, const char*, int) = nullptr;
    void (*close)(Reader) = nullptr;
    void (*set_error_handler)(Reader, void (*)(void*, void*), void*) = nullptr;
    int (*read)(Reader) = nullptr;
    int (*node_type)(Reader) = nullptr;
    int (*is_empty)(Reader) = nullptr;
    int (*line)(Reader) = nullptr;
    Text (*name)(Reader) = nullptr;
    Text (*name_space)(Reader) = nullptr;
    Text (*value)(Reader) = nullptr;
    int (*next_attribute)(Reader) = nullptr;
    int (*is_declaration)(Reader) = nullptr;
    int (*back_to_element)(Reader) = nullptr;
};

std::optional<XmlFunctions> load() {
    void* library = nullptr;
    for (const char* name : {"libxml2.so.2", "libxml2.so.16"})
        if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::nullopt;
    XmlFunctions call;
    const bool has_all =
        find_function(library, "xmlInitParser", call.initialise) &&
        find_function(library, "xmlReaderForMemory", call.open) &&
        find_function(library, "xmlFreeTextReader", call.close) &&
        find_function(library, "xmlTextReaderSetStructuredErrorHandler", call.set_error_handler) &&
        find_function(library, "xmlTextReaderRead", call.read) &&
        find_function(library, "xmlTextReaderNodeType", call.node_type) &&
        find_function(library, "xmlTextReaderIsEmptyElement", call.is_empty) &&
        find_function(library, "xmlTextReaderGetParserLineNumber", call.line) &&
        find_function(library, "xmlTextReaderConstLocalName", call.name) &&
        find_function(library, "xmlTextReaderConstNamespaceUri", call.name_space) &&
        find_function(library, "xmlTextReaderConstValue", call.value) &&
        find_function(library, "xmlTextReaderMoveToNextAttribute", call.next_attribute) &&
        find_function(library, "xmlTextReaderIsNamespaceDecl", call.is_declaration) &&
        find_function(library, "xmlTextReaderMoveToElement", call.back_to_element);
    if (!has_all) return std::nullopt;
    call.initialise();
    return call;
}

/// Loads libxml2 for the life of the process: its allocations may be freed at any time.
const std::optional<XmlFunctions>& functions() {
    static const std::optional<XmlFunctions> loaded = load();
    return loaded;
}

std::string string_of(Text text) {
    return text == nullptr ? std::string{} : std::string(reinterpret_cast<const char*>(text));
}

/// Builds the tree while libxml2 reads on, from a text whose bounds were checked.
class TreeReader {
   public:
    TreeReader(const XmlFunctions& call, Reader reader) : call_(call), reader_(reader) {}

    Result<XmlElement> read() {
        int more = call_.read(reader_);
        for (; more == 1; more = call_.read(reader_)) PCCL_TRY(take());
        if (more != 0) return refuse("is not well-formed");
        return std::move(root_);
    }

   private:
    Status take() {
        switch (call_.node_type(reader_)) {
            case kElement:
                return begin();
            case kEndOfElement:
                open_.pop_back();
                break;
            case kText:
            case kCData:
            case kSignificantSpace:
                open_.back()->text += string_of(call_.value(reader_));
                break;
            default:
                break;
        }
        return Status::ok();
    }

    Status begin() {
        // An open element gets no further sibling, so pointers to it stay valid.
        XmlElement& element = open_.empty() ? root_ : open_.back()->children.emplace_back();
        element.name = string_of(call_.name(reader_));
        element.name_space = string_of(call_.name_space(reader_));
        // libxml2 accepts an undeclared prefix and makes it a part of the name.
        if (element.name.find(':') != std::string::npos)
            return refuse(
                concat("uses an undeclared prefix in <", printable(element.name, 80), ">"));
        const bool is_empty = call_.is_empty(reader_) == 1;
        while (call_.next_attribute(reader_) == 1)
            if (call_.is_declaration(reader_) != 1)
                element.attributes.push_back({string_of(call_.name(reader_)),
                                              string_of(call_.name_space(reader_)),
                                              string_of(call_.value(reader_))});
        call_.back_to_element(reader_);
        if (!is_empty) open_.push_back(&element);
        return Status::ok();
    }

    [[nodiscard]] Status refuse(std::string_view why) const {
        return Status::invalid_argument(concat("XML ", why, " (line ", call_.line(reader_), ")"));
    }

    const XmlFunctions& call_;
    Reader reader_;
    XmlElement root_;
    std::vector<XmlElement*> open_;
};

}  // namespace

const XmlElement* XmlElement::child(std::string_view of_name) const {
    const auto found = std::find_if(children.begin(), children.end(),
                                    [&](const XmlElement& each) { return each.name == of_name; });
    return found == children.end() ? nullptr : &*found;
}

std::string_view XmlElement::text_of(std::string_view of_name) const {
    const XmlElement* const found = child(of_name);
    return found == nullptr ? std::string_view{} : trimmed(found->text);
}

const std::string* XmlElement::attribute(std::string_view of_name) const {
    const auto found = std::find_if(attributes.begin(), attributes.end(),
                                    [&](const XmlAttribute& each) { return each.name == of_name; });
    return found == attributes.end() ? nullptr : &found->value;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::string escaped_xml(std::string_view text) {
    std::string escaped;
    for (const char each : text) {
        if (each == '&')
            escaped += "&amp;";
        else if (each == '<')
            escaped += "&lt;";
        else if (each == '>')
            escaped += "&gt;";
        else if (each == '"')
            escaped += "&quot;";
        else
            escaped += each;
    }
    return escaped;
}

Result<XmlElement> read_xml(std::string_view text, const XmlReaderLimits& limits) {
    PCCL_TRY(check_xml_bounds(text, limits));
    // libxml2 takes the size as an int.
    if (text.size() > INT32_MAX) return Status::invalid_argument("XML has more than 2 GiB");
    const auto& call = functions();
    if (!call)
        return Status::unsupported(
            "libxml2.so.2 is not installed, which NETCONF needs: apt-get install libxml2");
    const auto size = static_cast<int>(text.size());
    const Reader reader = call->open(text.data(), size, nullptr, "UTF-8", kOptions);
    if (reader == nullptr) return Status::invalid_argument("XML is empty");
    const ScopeExit close([&] { call->close(reader); });
    // Some errors would otherwise go to stderr, with untrusted text.
    call->set_error_handler(reader, [](void*, void*) {}, nullptr);
    return TreeReader(*call, reader).read();
}

}  // namespace pccl::sys
