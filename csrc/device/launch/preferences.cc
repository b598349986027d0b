// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/preferences.h"

#include <algorithm>
#include <array>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"

namespace pccl::device {
namespace {

using kernels::Protocol;

constexpr std::array kProtocols = {Protocol::kLL, Protocol::kDirect, Protocol::kStaggered,
                                   Protocol::kCopyEngine, Protocol::kLL128};

constexpr std::array<std::string_view, kProtocols.size()> kWireNames = {"words", "direct", "turns",
                                                                        "engines", "lines"};

constexpr std::string_view kAny = "any";

std::string_view protocol_of(const Preferences& preferences) {
    return preferences.protocol ? name_of(*preferences.protocol) : kAny;
}

std::string description_of(const Preferences& preferences) {
    return concat("at most ", preferences.most_blocks, " blocks and ", protocol_of(preferences),
                  " protocol");
}

}  // namespace

Status check_preferences(const Preferences& preferences) {
    const int blocks = preferences.most_blocks;
    if (blocks >= 1 && blocks <= abi::kMostBlocks) return Status::ok();
    return Status::invalid_argument(concat("at most ", blocks, " blocks: a number from 1 to ",
                                           abi::kMostBlocks, " is possible"));
}

Status check_alike(Rank rank, const Preferences& own, const Preferences& leading) {
    if (own.most_blocks == leading.most_blocks && own.protocol == leading.protocol)
        return Status::ok();
    return Status::mismatch(rank, concat("rank ", rank, " requests ", description_of(own),
                                         ", rank 0 ", description_of(leading),
                                         ": the group's options must be the same on all ranks"));
}

std::string to_string(const Preferences& preferences) {
    return concat(preferences.copy_engines ? "1 " : "0 ", preferences.most_blocks, " ",
                  preferences.protocol ? wire_name_of(*preferences.protocol) : kAny);
}

Result<Preferences> parse_preferences(std::string_view& line) {
    Preferences preferences{.copy_engines = next_word(line) == "1"};
    const auto blocks = number_in<int>(next_word(line), 1, abi::kMostBlocks);
    if (!blocks) return Status::invalid_argument("no number of blocks");
    preferences.most_blocks = *blocks;
    const std::string_view protocol = next_word(line);
    if (protocol != kAny) {
        PCCL_ASSIGN_OR_RETURN(preferences.protocol, protocol_named(protocol));
    }
    return preferences;
}

std::string_view name_of(Protocol protocol) {
    constexpr std::array<std::string_view, kProtocols.size()> kNames = {"ll", "direct", "staggered",
                                                                        "copy_engine", "ll128"};
    return kNames.at(static_cast<std::size_t>(protocol));
}

std::string_view wire_name_of(Protocol protocol) {
    return kWireNames.at(static_cast<std::size_t>(protocol));
}

Result<Protocol> protocol_named(std::string_view name) {
    const auto* const found = std::ranges::find_if(kProtocols, [&](Protocol each) {
        return name == name_of(each) || name == wire_name_of(each);
    });
    if (found != kProtocols.end()) return *found;
    return Status::invalid_argument(
        concat("'", name, "' is no protocol: ll, direct, staggered, copy_engine, ll128"));
}

}  // namespace pccl::device
