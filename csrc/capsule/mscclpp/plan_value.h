// A value of a plan's JSON, which knows where it is, for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/text.h"
#include "csrc/capsule/mscclpp/lined_json.h"
#include "csrc/sys/xml/xml_text.h"

namespace pccl::capsule::mscclpp {

class Value {
   public:
    /// The whole of a file. Both must outlive this, and what is read of it.
    Value(const LinedJson& document, std::string_view file)
        : document_(&document), value_(&document.root()), file_(file), line_(1) {}

    /// The same, told to be `label` in messages: "gpu 0, threadblock 0".
    [[nodiscard]] Value called(std::string label) const {
        Value named = *this;
        named.label_ = std::move(label);
        return named;
    }
    [[nodiscard]] const json& get() const { return *value_; }
    /// Where it begins, or the nearest object that it is in.
    [[nodiscard]] int line() const { return line_; }

    /// kInvalidArgument "<file>:<line>: <label>: <parts>".
    template <typename... Parts>
    [[nodiscard]] Status refuse(const Parts&... parts) const {
        return Status::invalid_argument(concat(place(), parts...));
    }
    /// The same as kUnsupported.
    template <typename... Parts>
    [[nodiscard]] Status cannot(const Parts&... parts) const {
        return Status::unsupported(concat(place(), parts...));
    }

    [[nodiscard]] bool has(const char* key) const {
        return value_->is_object() && value_->contains(key);
    }
    [[nodiscard]] Result<std::string> text(const char* key) const;
    /// Stays as it is where there is none.
    [[nodiscard]] Status boolean(const char* key, bool& value) const;
    /// Stays as it is where there is none.
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
    [[nodiscard]] Result<Value> object(const char* key) const;
    /// Empty where there is none.
    [[nodiscard]] Result<std::vector<Value>> list(const char* key, std::size_t most) const;
    /// From 0 to `most`, of a list of at most kMostNamed; empty where there is none.
    [[nodiscard]] Result<std::vector<int>> numbers(const char* key, int most) const;
    /// For messages.
    [[nodiscard]] std::string shown_at(const char* key) const { return shown_of((*value_)[key]); }

    static constexpr std::size_t kMostNamed = 1024;  // of chunks or channels, by one operation

   private:
    [[nodiscard]] Value member(const json& found) const {
        Value member = *this;
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
