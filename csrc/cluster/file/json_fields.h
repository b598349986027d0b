// Reads the members of a JSON object into values, within bounds; the first fault stays.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"

namespace pccl::cluster {

using Json = nlohmann::json;

struct Range {
    long low = 0;
    long high = 0;
};

/// `place` says where the object is, for messages: "cluster.yaml: switches[0]".
class JsonFields {
   public:
    JsonFields(const Json& object, std::string place);

    /// Leaves the value as it is where the member is missing.
    void number(std::string_view key, long& into, const Range& range);
    void flag(std::string_view key, bool& into);
    /// At most kMostText bytes, without control characters.
    void text(std::string_view key, std::string& into);
    /// As is_name() has it (model/name.h).
    void name(std::string_view key, std::string& into);
    /// The member, to be read by the caller; null where it is missing.
    [[nodiscard]] const Json* member(std::string_view key);
    /// A list; an empty one where it is missing. At most kMostItems.
    [[nodiscard]] const Json& list(std::string_view key);

    void refuse(std::string_view key, std::string_view what);
    [[nodiscard]] std::string place_of(std::string_view key) const;
    /// Refuses members that nobody asked for, and names the nearest that is known.
    [[nodiscard]] Status finish();

    static constexpr std::size_t kMostText = 1024;
    static constexpr std::size_t kMostItems = 65536;

   private:
    const Json& object_;
    std::string place_;
    std::vector<std::string_view> known_;
    Status status_;
};

/// kInvalidArgument "<place>: <what>".
[[nodiscard]] Status refused(std::string_view place, std::string_view what);

}  // namespace pccl::cluster
