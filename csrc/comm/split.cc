// SPDX-License-Identifier: Apache-2.0

// Splits a group into smaller ones, each of the ranks with one color, as MPI_Comm_split does.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/comm/communicator.h"
#include "csrc/comm/group/group.h"
#include "csrc/comm/join/join_options.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {
namespace {

/// Request of one rank for all others.
struct SplitRequest {
    std::int64_t color = -1;  // negative: no group
    std::int64_t key = 0;
    std::int64_t sequence = 0;  // of the old group, which makes each meeting place unique
};
constexpr std::size_t kFields = sizeof(SplitRequest) / sizeof(std::int64_t);

std::vector<Rank> members_of(std::int64_t color, const std::vector<SplitRequest>& requests) {
    std::vector<Rank> members;
    for (std::size_t rank = 0; rank < requests.size(); ++rank)
        if (requests[rank].color == color) members.push_back(static_cast<Rank>(rank));
    std::ranges::stable_sort(
        members, {}, [&](Rank rank) { return requests[static_cast<std::size_t>(rank)].key; });
    return members;
}

/// Returns a place that is unique for each call, and not longer for groups that were split
/// repeatedly.
std::string place_to_meet(const transport::GroupId& parent, std::int64_t sequence, int color) {
    Digest digest;
    digest.add({reinterpret_cast<const char*>(parent.data()), parent.size()});
    return concat("split/", digest.text(), "/", sequence, "/", color);
}

}  // namespace

Result<std::shared_ptr<CommunicatorImpl>> CommunicatorImpl::split(std::optional<int> color, int key,
                                                                  OptionalTimeout limit) {
    if (color.value_or(0) < 0)
        return Status::invalid_argument(
            concat("color ", *color, " of split; it must be 0 or more, or none at all"));
    SplitRequest own{
        .color = color.value_or(-1), .key = key, .sequence = static_cast<std::int64_t>(sequence())};
    std::vector<SplitRequest> requests(static_cast<std::size_t>(size()));
    const std::array<Block, 1> input{{{reinterpret_cast<std::byte*>(&own), kFields}}};
    std::vector<Block> outputs;
    outputs.reserve(requests.size());
    for (SplitRequest& request : requests)
        outputs.push_back({reinterpret_cast<std::byte*>(&request), kFields});
    PCCL_TRY(run({.kind = CollectiveKind::kAllGather,
                  .type = DataType::kInt64,
                  .inputs = input,
                  .outputs = outputs},
                 limit));
    if (!color) return std::shared_ptr<CommunicatorImpl>();
    const std::vector<Rank> members = members_of(own.color, requests);
    CommunicatorImplOptions options = of_members(options_, members);
    options.runtime = runtime_;
    options.timeout = timeout();
    options.switches_phases = false;
    options.name = concat(name(), "/", *color);
    if (options.base_store != nullptr)
        options.store = bootstrap::prefixed(
            options.base_store,
            place_to_meet(group_->directory().identity().group, requests.front().sequence, *color));
    return create(options);
}

}  // namespace pccl::comm
