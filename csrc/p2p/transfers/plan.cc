// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/transfers/plan.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/p2p/transfers/registered_memory.h"

namespace pccl::p2p {
namespace {

bool is_within(const Extent& block, std::uint64_t bytes) {
    return block.offset <= bytes && block.bytes <= bytes - block.offset;
}

Status out_of_bounds(std::uint64_t index, const Extent& block, std::uint64_t bytes) {
    return Status::invalid_argument(concat("block ", index, " is ", block.bytes, " bytes at ",
                                           block.offset, " of a memory of ", bytes));
}

/// Checks only the last block, which has the largest offset unless one overflows.
Status check_strided(const StridedExtents& blocks, std::uint64_t bytes) {
    if (blocks.count == 0) return Status::ok();
    if (!is_within({blocks.base, blocks.bytes}, bytes))
        return out_of_bounds(0, {blocks.base, blocks.bytes}, bytes);
    const std::uint64_t room = bytes - blocks.base - blocks.bytes;
    const std::uint64_t steps = blocks.count - 1;
    if (blocks.stride == 0 || steps <= room / blocks.stride) return Status::ok();
    const std::uint64_t first = room / blocks.stride + 1;
    return Status::invalid_argument(concat(
        "block ", first, " of ", blocks.count, " is not within a memory of ", bytes,
        " bytes: base ", blocks.base, ", length ", blocks.bytes, ", stride ", blocks.stride));
}

std::uint64_t bytes_of_all(const Extents& blocks) {
    if (const auto* const run = blocks.strided()) return run->bytes * run->count;
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < blocks.size(); ++i) bytes += blocks[i].bytes;
    return bytes;
}

/// Returns the first block whose length differs from its counterpart's, or the number of blocks
/// where there is none. Both lists have the same number.
std::uint64_t first_unlike(const Extents& here, const Extents& there) {
    const auto* const run = here.strided();
    const auto* const other = there.strided();
    if (run != nullptr && other != nullptr && run->bytes == other->bytes) return here.size();
    std::uint64_t index = 0;
    while (index < here.size() && here[index].bytes == there[index].bytes) ++index;
    return index;
}

/// Returns whether `next` continues `last` on both sides and one piece may hold both.
bool joins(const Plan& plan, const transport::RmaPiece& last, const transport::RmaPiece& next) {
    return last.at + last.bytes == next.at && last.there + last.bytes == next.there &&
           last.bytes + next.bytes <= plan.longest();
}

}  // namespace

std::uint64_t Extents::size() const {
    if (const auto* const run = strided()) return run->count;
    return std::get<std::vector<Extent>>(blocks_).size();
}

Status Extents::check_within(std::uint64_t bytes) const {
    if (size() > kMost)
        return Status::invalid_argument(
            concat("a plan has at most ", kMost, " blocks, not ", size()));
    if (const auto* const run = strided()) return check_strided(*run, bytes);
    const auto& list = std::get<std::vector<Extent>>(blocks_);
    const auto bad =
        std::ranges::find_if(list, [&](const Extent& block) { return !is_within(block, bytes); });
    if (bad == list.end()) return Status::ok();
    return out_of_bounds(static_cast<std::uint64_t>(bad - list.begin()), *bad, bytes);
}

Plan::Plan(Local local, Remote remote, std::uint64_t longest)
    : local_(std::move(local)),
      remote_(std::move(remote)),
      longest_(longest),
      bytes_(bytes_of_all(local_.blocks)) {}

Result<std::shared_ptr<const Plan>> Plan::make(Local local, Remote remote, std::uint64_t longest) {
    if (longest == 0 || longest > kLongestPiece)
        return Status::invalid_argument(
            concat("a piece has 1 to ", kLongestPiece, " bytes, not ", longest));
    if (local.blocks.size() != remote.blocks.size())
        return Status::invalid_argument(concat("a plan pairs blocks: ", local.blocks.size(),
                                               " local ones do not go with ", remote.blocks.size(),
                                               " remote ones"));
    PCCL_TRY(local.blocks.check_within(local.memory->bytes()).with_context("local"));
    PCCL_TRY(remote.blocks.check_within(remote.memory.bytes()).with_context("remote"));
    const std::uint64_t unlike = first_unlike(local.blocks, remote.blocks);
    if (unlike < local.blocks.size())
        return Status::invalid_argument(concat("block ", unlike, " has ",
                                               local.blocks[unlike].bytes, " bytes here and ",
                                               remote.blocks[unlike].bytes, " there"));
    return std::shared_ptr<const Plan>(new Plan(std::move(local), std::move(remote), longest));
}

std::size_t steps_from(const Plan& plan, PlanCursor from, std::span<const std::uint32_t> indices,
                       std::span<PlanStep> steps) {
    const std::uint64_t end = indices.empty() ? plan.size() : indices.size();
    const transport::Registration* const local = &registered(plan.local());
    const abi::MemoryDescriptor* const remote = &plan.remote().imported().descriptor;
    std::size_t filled = 0;
    while (from.block < end) {
        const std::uint64_t index = indices.empty() ? from.block : indices[from.block];
        const Extent here = plan.local_blocks()[index];
        const std::uint64_t there = plan.remote_blocks()[index].offset;
        const std::uint64_t bytes = std::min(here.bytes - from.bytes, plan.longest());
        const PlanCursor after = from.bytes + bytes == here.bytes
                                     ? PlanCursor{from.block + 1, 0}
                                     : PlanCursor{from.block, from.bytes + bytes};
        const transport::RmaPiece piece{.local = local,
                                        .at = here.offset + from.bytes,
                                        .remote = remote,
                                        .there = there + from.bytes,
                                        .bytes = bytes};
        if (filled > 0 && joins(plan, steps[filled - 1].piece, piece)) {
            steps[filled - 1].piece.bytes += bytes;
            steps[filled - 1].after = after;
        } else if (bytes > 0) {
            if (filled == steps.size()) break;
            steps[filled++] = {piece, after};
        }
        from = after;
    }
    return filled;
}

std::optional<transport::RmaRun> run_from(const Plan& plan, const PlanCursor& from) {
    const StridedExtents* const here = plan.local_blocks().strided();
    const StridedExtents* const there = plan.remote_blocks().strided();
    if (here == nullptr || there == nullptr || from.bytes > 0) return std::nullopt;
    const std::uint64_t bytes = here->bytes;
    const bool touch = here->stride == bytes && there->stride == bytes;
    if (touch || bytes == 0 || bytes > plan.longest() || plan.size() - from.block < 2)
        return std::nullopt;
    return transport::RmaRun{.first = {.local = &registered(plan.local()),
                                       .at = plan.local_blocks()[from.block].offset,
                                       .remote = &plan.remote().imported().descriptor,
                                       .there = plan.remote_blocks()[from.block].offset,
                                       .bytes = bytes},
                             .stride_here = here->stride,
                             .stride_there = there->stride,
                             .count = plan.size() - from.block};
}

}  // namespace pccl::p2p
