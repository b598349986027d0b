// SPDX-License-Identifier: Apache-2.0

// JSON document of any origin with the line of each of its objects.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include <pccl/status.h>

namespace pccl::capsule::mscclpp {

using nlohmann::json;

class LinedJson {
   public:
    /// Parses a document. kInvalidArgument, with the line: the text is no JSON object, is nested
    /// too deeply, or has more objects than a plan may have.
    [[nodiscard]] static Result<LinedJson> parse(std::string_view text, std::string_view file);

    [[nodiscard]] const json& root() const { return root_; }
    /// Returns the line, from 1 on; 0 for a value that is no object.
    [[nodiscard]] int line_of(const json& value) const;

    static constexpr std::size_t kMostDepth = 16;
    static constexpr std::size_t kMostObjects = 1U << 20U;

   private:
    class Builder;
    LinedJson() = default;

    json root_;
    // Keyed by the address of an object's members, which does not change when values are moved.
    std::unordered_map<const json::object_t*, int> lines_;
};

}  // namespace pccl::capsule::mscclpp
