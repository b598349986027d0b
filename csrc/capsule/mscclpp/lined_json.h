// JSON of any origin that knows on which line each of its objects begins.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "csrc/base/status.h"

namespace pccl::capsule::mscclpp {

using nlohmann::json;

class LinedJson {
   public:
    /// kInvalidArgument with the line for what is no JSON object, is nested too deep, or has more
    /// objects than a plan.
    [[nodiscard]] static Result<LinedJson> parse(std::string_view text, std::string_view file);

    [[nodiscard]] const json& root() const { return root_; }
    /// From 1; 0 for what is no object.
    [[nodiscard]] int line_of(const json& value) const;

    static constexpr std::size_t kMostDepth = 16;
    static constexpr std::size_t kMostObjects = 1U << 20U;

   private:
    class Builder;
    LinedJson() = default;

    json root_;
    // By where the members of an object are: they stay there while values are moved.
    std::unordered_map<const json::object_t*, int> lines_;
};

}  // namespace pccl::capsule::mscclpp
