// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/msccl/algo.h"

#include <algorithm>
#include <array>

namespace pccl::capsule::msccl {
namespace {

using schedule::CollectiveKind;
using schedule::MessageProtocol;

struct CollectiveName {
    std::string_view name;
    CollectiveKind kind;
};
constexpr std::array<CollectiveName, 8> kCollectives{
    {{"allreduce", CollectiveKind::kAllReduce},
     {"allgather", CollectiveKind::kAllGather},
     {"reducescatter", CollectiveKind::kReduceScatter},
     {"broadcast", CollectiveKind::kBroadcast},
     {"reduce", CollectiveKind::kReduce},
     {"gather", CollectiveKind::kGather},
     {"scatter", CollectiveKind::kScatter},
     {"alltoall", CollectiveKind::kAllToAll}}};

struct ProtocolName {
    std::string_view name;
    MessageProtocol protocol;
};
constexpr std::array<ProtocolName, 3> kProtocols{{{"LL", MessageProtocol::kLL},
                                                  {"LL128", MessageProtocol::kLL128},
                                                  {"Simple", MessageProtocol::kDirect}}};

}  // namespace

std::optional<CollectiveKind> collective_called(std::string name) {
    std::erase(name, '_');
    const auto* const found = std::ranges::find(kCollectives, name, &CollectiveName::name);
    if (found == kCollectives.end()) return std::nullopt;
    return found->kind;
}

std::string_view name_of(CollectiveKind kind) {
    return std::ranges::find(kCollectives, kind, &CollectiveName::kind)->name;
}

std::optional<MessageProtocol> protocol_called(std::string_view name) {
    const auto* const found = std::ranges::find(kProtocols, name, &ProtocolName::name);
    if (found == kProtocols.end()) return std::nullopt;
    return found->protocol;
}

std::string_view name_of(MessageProtocol protocol) {
    return std::ranges::find(kProtocols, protocol, &ProtocolName::protocol)->name;
}

}  // namespace pccl::capsule::msccl
