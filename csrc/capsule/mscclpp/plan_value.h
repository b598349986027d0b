// SPDX-License-Identifier: Apache-2.0

// Value of a plan's JSON with its place, for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/text/text.h"
#include "csrc/capsule/mscclpp/lined_json.h"
#include "csrc/sys/xml/xml_text.h"

namespace pccl::capsule::mscclpp {

class PlanValue {
   public:
    /// Refers to the whole document. `document` and `file` must outlive this value, and all values
    /// that are derived from it.
    PlanValue(const LinedJson& document, std::string_view file)
        : document_(&document), value_(&document.root()), file_(file), line_(1) {}

    /// Returns this value with a label for error messages: "gpu 0, threadblock 0".
    [[nodiscard]] PlanValue called(std::string label) const {
        PlanValue named = *this;
        named.label_ = std::move(label);
        return named;
    }
    [[nodiscard]] const json& get() const { return *value_; }
    /// Returns the line of the value, or of the innermost object that contains it.
    [[nodiscard]] int line() const { return line_; }

    /// Returns kInvalidArgument "<file>:<line>: <label>: <parts>".
    template <typename... Parts>
    [[nodiscard]] Status refuse(const Parts&... parts) const {
        return Status::invalid_argument(concat(place(), parts...));
    }
    /// Returns the same message as kUnsupported.
    template <typename... Parts>
    [[nodiscard]] Status cannot(const Parts&... parts) const {
        return Status::unsupported(concat(place(), parts...));
    }

    [[nodiscard]] bool has(const char* key) const {
        return value_->is_object() && value_->contains(key);
    }
    [[nodiscard]] Result<std::string> text(const char* key) const;
    /// Reads an optional value; `value` is unchanged if the key is absent.
    [[nodiscard]] Status boolean(const char* key, bool& value) const;
    /// Reads an optional value; `value` is unchanged if the key is absent.
    template <typename Number>
    [[nodiscard]] Status number(const char* key, Number least, Number most, Number& value) const {
        if (!has(key)) return Status::ok();
        return number((*value_)[key], key, least, most, value);
    }
    template <typename Number>
    [[nodiscard]] Status needed(const char* key, Number least, Number most, Number& value) const {
        if (!has(key)) return refuse("has no \"", key, "\"");
        return number((*value_)[key], key, least, most, value);
    }
    [[nodiscard]] Result<PlanValue> object(const char* key) const;
    /// Returns a list; empty if the key is absent.
    [[nodiscard]] Result<std::vector<PlanValue>> list(const char* key, std::size_t most) const;
    /// Returns numbers from 0 to `most`, at most kMostNamed; empty if the key is absent.
    [[nodiscard]] Result<std::vector<int>> numbers(const char* key, int most) const;
    /// Returns the value as text, for error messages.
    [[nodiscard]] std::string shown_at(const char* key) const { return shown_of((*value_)[key]); }

    static constexpr std::size_t kMostNamed = 1024;  // of chunks or channels, in one operation

   private:
    [[nodiscard]] PlanValue member(const json& found) const {
        PlanValue member = *this;
        member.value_ = &found;
        if (const int line = document_->line_of(found); line > 0) member.line_ = line;
        return member;
    }
    [[nodiscard]] std::string place() const {
        return concat(file_, ":", line_, ": ", label_, label_.empty() ? "" : ": ");
    }
    [[nodiscard]] static std::string shown_of(const json& value) {
        return sys::shown(value.dump(-1, ' ', true, json::error_handler_t::replace));
    }
    template <typename Number>
    [[nodiscard]] Status number(const json& found, const char* key, Number least, Number most,
                                Number& value) const {
        if (!found.is_number_integer() || found < least || found > most)
            return refuse("\"", key, "\" is ", shown_of(found), "; it must be ", least, " to ",
                          most);
        value = found.get<Number>();
        return Status::ok();
    }

    const LinedJson* document_;
    const json* value_;
    std::string_view file_;
    std::string label_;
    int line_;
};

}  // namespace pccl::capsule::mscclpp
