// SPDX-License-Identifier: Apache-2.0

// Attribute of the machine, with its source.
//
//     Attribute<int> width;
//     width.offer(8, Source::kHwloc);    // true: there was no value
//     width.offer(16, Source::kSysfs);   // true: higher precedence
//     width.offer(8, Source::kHwloc);    // false
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <pccl/export.h>

namespace pccl::topo {

/// Sources in rising precedence.
enum class Source {
    kDefault,     // usual value, without any source
    kAssumption,  // the user's `assume`, for attributes without a source below
    kHwloc,
    kSysfs,
    kVerbs,
    kNvml,
    kVendorFile,  // installed by the vendor of the machine
    kUserFile,    // path set by the user
    kRepair,      // replaces an impossible value
};

enum class Provenance { kMeasured, kDeclared, kAssumed };

[[nodiscard]] constexpr Provenance provenance(Source source) {
    if (source <= Source::kAssumption || source == Source::kRepair) return Provenance::kAssumed;
    return source < Source::kVendorFile ? Provenance::kMeasured : Provenance::kDeclared;
}

[[nodiscard]] PCCL_API std::string_view to_string(Source source);
[[nodiscard]] PCCL_API std::string_view to_string(Provenance provenance);

/// Two attributes with equal values are equal, independent of their sources.
template <typename T>
class Attribute {
   public:
    Attribute() = default;
    Attribute(T value, Source source) : value_(std::move(value)), source_(source) {}

    [[nodiscard]] bool is_known() const { return value_.has_value(); }
    /// Requires is_known().
    [[nodiscard]] const T& operator*() const { return *value_; }
    [[nodiscard]] T value_or(T other) const { return value_.value_or(std::move(other)); }
    [[nodiscard]] Source source() const { return source_; }

    /// Stores the value unless the present one has a source of equal or higher precedence.
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

/// Parses an integer: decimal, or hexadecimal after "0x".
[[nodiscard]] std::optional<std::int64_t> parse_number(std::string_view text);

}  // namespace pccl::topo
