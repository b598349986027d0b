// A fact about the machine, and who said so.
//
//     Attribute<int> width;
//     width.offer(8, Source::kHwloc);    // true: nobody had said anything
//     width.offer(16, Source::kSysfs);   // true: knows better
//     width.offer(8, Source::kHwloc);    // false
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "csrc/base/export.h"

namespace pccl::topo {

/// In rising precedence.
enum class Source {
    kDefault,     // nobody said; the usual value
    kAssumption,  // the user's `assume`, for what nothing below says
    kHwloc,
    kSysfs,
    kVerbs,
    kNvml,
    kVendorFile,  // installed by the vendor of the machine
    kUserFile,    // named by the user
    kRepair,      // what somebody said cannot be right
};

enum class Provenance { kMeasured, kDeclared, kAssumed };

[[nodiscard]] constexpr Provenance provenance(Source source) {
    if (source <= Source::kAssumption || source == Source::kRepair) return Provenance::kAssumed;
    return source < Source::kVendorFile ? Provenance::kMeasured : Provenance::kDeclared;
}

[[nodiscard]] PCCL_API std::string_view to_string(Source source);
[[nodiscard]] PCCL_API std::string_view to_string(Provenance provenance);

/// Two are equal when they say the same, whoever says so.
template <typename T>
class Attribute {
   public:
    Attribute() = default;
    Attribute(T value, Source source) : value_(std::move(value)), source_(source) {}

    [[nodiscard]] bool is_known() const { return value_.has_value(); }
    /// Needs is_known().
    [[nodiscard]] const T& operator*() const { return *value_; }
    [[nodiscard]] T value_or(T other) const { return value_.value_or(std::move(other)); }
    [[nodiscard]] Source source() const { return source_; }

    /// Takes the value unless a source of equal or higher precedence has spoken.
    bool offer(T value, Source source) {
        if (value_ && source <= source_) return false;
        value_ = std::move(value);
        source_ = source;
        return true;
    }
    bool offer(const Attribute& other) {
        return other.value_ && offer(*other.value_, other.source_);
    }

    friend bool operator==(const Attribute& a, const Attribute& b) { return a.value_ == b.value_; }

   private:
    std::optional<T> value_;
    Source source_ = Source::kDefault;
};

/// A whole number: decimal, or hexadecimal after "0x".
[[nodiscard]] std::optional<std::int64_t> parse_number(std::string_view text);

}  // namespace pccl::topo
