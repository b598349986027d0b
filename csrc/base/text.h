// Joins values into one string, for messages: concat("rank ", 3, " left").
#pragma once

#include <sstream>
#include <string>

namespace pccl {

template <typename... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return std::move(out).str();
}

}  // namespace pccl
