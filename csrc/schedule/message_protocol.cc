// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/message_protocol.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "csrc/base/text/text.h"

namespace pccl::schedule {
namespace {

constexpr std::array<std::string_view, 3> kNames{"ll", "ll128", "direct"};
constexpr std::array<std::string_view, 3> kFileNames{"words", "lines", "direct"};

}  // namespace

std::string_view to_string(MessageProtocol protocol) {
    return kNames.at(static_cast<std::size_t>(protocol));
}

std::string_view file_name_of(MessageProtocol protocol) {
    return kFileNames.at(static_cast<std::size_t>(protocol));
}

std::string names_of_message_protocols() {
    return concat(kNames[0], ", ", kNames[1], ", ", kNames[2]);
}

std::optional<MessageProtocol> message_protocol_named(std::string_view name) {
    for (const auto& names : {kNames, kFileNames}) {
        const auto* const found = std::ranges::find(names, name);
        if (found != names.end()) return static_cast<MessageProtocol>(found - names.begin());
    }
    return std::nullopt;
}

}  // namespace pccl::schedule
