// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/block_tables.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::capsule::mscclpp {

using schedule::Buffer;
using sys::shown;

Result<Buffer> buffer_of(const PlanValue& of, const char* key) {
    PCCL_ASSIGN_OR_RETURN(const std::string name, of.text(key));
    constexpr std::string_view kBuffers = "ios";
    const std::size_t which = name.size() == 1 ? kBuffers.find(name) : std::string_view::npos;
    if (which == std::string_view::npos)
        return of.refuse("\"", key, "\" is \"", shown(name), "\"; it must be i, o or s");
    return static_cast<Buffer>(which);
}

Result<ChannelType> type_of(const PlanValue& of, const char* key) {
    constexpr std::array<std::pair<std::string_view, ChannelType>, 3> kTypes{
        {{"memory", ChannelType::kMemory},
         {"port", ChannelType::kPort},
         {"switch", ChannelType::kSwitch}}};
    PCCL_ASSIGN_OR_RETURN(const std::string name, of.text(key));
    for (const auto& [known, type] : kTypes)
        if (name == known) return type;
    return of.refuse("\"", key, "\" is \"", shown(name), "\"; it must be memory, port or switch");
}

Result<GpuTables> tables_of_gpu(const PlanValue& gpu, int ranks) {
    GpuTables tables;
    PCCL_ASSIGN_OR_RETURN(const std::vector<PlanValue> channels,
                          gpu.list("channels", PlanValue::kMostNamed));
    for (const PlanValue& each : channels) {
        PCCL_ASSIGN_OR_RETURN(const ChannelType type, type_of(each, "channel_type"));
        if (type == ChannelType::kSwitch) continue;
        PCCL_ASSIGN_OR_RETURN(const auto peers, each.numbers("connected_to", ranks - 1));
        auto& known = tables.channels[type];
        for (const Rank peer : peers) {
            const auto nth = std::ranges::count(known, peer, &PlanChannel::peer);
            known.push_back({type, peer, static_cast<int>(nth)});
        }
    }
    PCCL_ASSIGN_OR_RETURN(const std::vector<PlanValue> remotes,
                          gpu.list("remote_buffers", PlanValue::kMostNamed));
    for (const PlanValue& each : remotes) {
        RemoteBuffer& remote = tables.remotes.emplace_back();
        PCCL_TRY(each.needed("rank", 0, ranks - 1, remote.rank));
        PCCL_ASSIGN_OR_RETURN(remote.buffer, buffer_of(each, "type"));
    }
    return tables;
}

Result<BlockTables> tables_of_block(const PlanValue& block, const GpuTables& tables) {
    BlockTables own;
    PCCL_ASSIGN_OR_RETURN(const auto channels, block.list("channels", PlanValue::kMostNamed));
    for (const PlanValue& each : channels) {
        PCCL_ASSIGN_OR_RETURN(const ChannelType type, type_of(each, "channel_type"));
        if (type == ChannelType::kSwitch) continue;
        const auto known = tables.channels.find(type);
        const int count =
            known == tables.channels.end() ? 0 : static_cast<int>(known->second.size());
        PCCL_ASSIGN_OR_RETURN(const auto ids, each.numbers("channel_ids", count - 1));
        for (const int id : ids)
            own.channels[type].push_back(known->second[static_cast<std::size_t>(id)]);
    }
    PCCL_ASSIGN_OR_RETURN(const auto refs, block.list("remote_buffer_refs", PlanValue::kMostNamed));
    for (const PlanValue& each : refs) {
        PCCL_ASSIGN_OR_RETURN(const ChannelType type, type_of(each, "access_channel_type"));
        const int last = static_cast<int>(tables.remotes.size()) - 1;
        PCCL_ASSIGN_OR_RETURN(const auto ids, each.numbers("remote_buffer_ids", last));
        for (const int id : ids)
            own.remotes[type].push_back(tables.remotes[static_cast<std::size_t>(id)]);
    }
    return own;
}

}  // namespace pccl::capsule::mscclpp
