// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/frames.h"

#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::transport {
namespace {

Result<RmaBlocks> run_of(const RmaFrame& head) {
    const bool is_whole = head.count > 0 && head.bytes % head.count == 0;
    if (!is_whole || (head.count > 1 && head.bytes == 0))
        return Status::invalid_argument(
            concat("a run of ", head.count, " blocks that have ", head.bytes, " bytes together"));
    return RmaBlocks({.offset = head.offset, .bytes = head.bytes / head.count}, head.stride,
                     head.count);
}

Result<RmaBlocks> list_of(const RmaFrame& head, std::vector<RmaExtent> list) {
    std::uint64_t left = head.bytes;
    for (const RmaExtent& each : list) {
        if (each.bytes == 0 || each.bytes > left)
            return Status::invalid_argument(
                concat("a list with a block of ", each.bytes, " bytes, of ", left, " left"));
        left -= each.bytes;
    }
    if (left > 0)
        return Status::invalid_argument(
            concat("a list that lacks ", left, " bytes of its payload"));
    return RmaBlocks(std::move(list));
}

}  // namespace

RmaFrame frame_of(RmaFrameKind kind, std::uint64_t number) {
    RmaFrame head{};
    head.magic = kRmaMagic;
    head.kind = kind;
    head.number = number;
    return head;
}

RmaFrame request_of(RmaFrameKind kind, std::uint64_t number, const RmaRange& range) {
    RmaFrame head = frame_of(kind, number);
    head.layout = range.blocks.list().empty() ? RmaLayout::kRun : RmaLayout::kList;
    head.bytes = range.blocks.bytes();
    head.id = range.registration.id;
    head.nonce = range.registration.nonce;
    head.count = range.blocks.count();
    head.offset = range.blocks.first().offset;
    head.stride = range.blocks.stride();
    return head;
}

Result<std::size_t> listed_behind(const RmaFrame& head) {
    if (!is_request(head) || head.layout == RmaLayout::kRun) return std::size_t{0};
    if (head.layout == RmaLayout::kList && head.count >= 2 && head.count <= RmaBlocks::kMostListed)
        return static_cast<std::size_t>(head.count);
    return Status::invalid_argument(concat("a request for ", head.count, " blocks in layout ",
                                           static_cast<int>(head.layout), ": a list has 2 to ",
                                           RmaBlocks::kMostListed));
}

Result<RmaRange> range_of(const RmaFrame& request, std::vector<RmaExtent> list) {
    if (request.count > 1 && request.bytes > kRmaTogether)
        return Status::invalid_argument(concat("a request for ", request.bytes, " bytes in ",
                                               request.count, " blocks: several have at most ",
                                               kRmaTogether));
    auto blocks = list.empty() ? run_of(request) : list_of(request, std::move(list));
    PCCL_TRY(blocks.status());
    return RmaRange{.registration = {.id = request.id, .nonce = request.nonce},
                    .blocks = std::move(*blocks)};
}

Status rma_protocol_error(std::string_view what) {
    return Status::peer_lost(kNoRank, concat("the peer's link sent ", what));
}

}  // namespace pccl::transport
