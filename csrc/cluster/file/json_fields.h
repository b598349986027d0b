// SPDX-License-Identifier: Apache-2.0

// Reader of the members of a JSON object into values, within limits; it keeps the first error.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>

namespace pccl::cluster {

using Json = nlohmann::json;

struct NumberRange {
    long low = 0;
    long high = 0;
};

/// Reader of `object`; `place` is its place for error messages: "cluster.yaml: switches[0]".
class JsonFields {
   public:
    JsonFields(const Json& object, std::string place);

    /// Reads an optional value; `into` is unchanged if the member is missing.
    void number(std::string_view key, long& into, const NumberRange& range);
    void flag(std::string_view key, bool& into);
    /// Reads at most kMostText bytes, without control characters.
    void text(std::string_view key, std::string& into);
    /// Reads a name that satisfies is_name() (model/name.h).
    void name(std::string_view key, std::string& into);
    /// Returns a member for the caller to read; null if it is missing.
    [[nodiscard]] const Json* member(std::string_view key);
    /// Returns a list of at most kMostItems; empty if it is missing.
    [[nodiscard]] const Json& list(std::string_view key);

    void refuse(std::string_view key, std::string_view what);
    [[nodiscard]] std::string place_of(std::string_view key) const;
    /// Rejects members that were not read; the error contains the nearest valid name.
    [[nodiscard]] Status finish();

    static constexpr std::size_t kMostText = 1024;
    static constexpr std::size_t kMostItems = 65536;

   private:
    const Json& object_;
    std::string place_;
    std::vector<std::string_view> known_;
    Status status_;
};

/// Returns kInvalidArgument "<place>: <what>".
[[nodiscard]] Status refused(std::string_view place, std::string_view what);

}  // namespace pccl::cluster
