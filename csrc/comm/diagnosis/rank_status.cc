// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/rank_status.h"

#include <algorithm>
#include <span>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kLongestText = 1 * kKiB;
constexpr std::size_t kLongestOperation = 400;
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kMostAwaited = 64;
static_assert(kMostAwaited >= Shrinking::kMostNamed);

void write_ranks(ByteWriter& out, const std::vector<Rank>& ranks) {
    const std::size_t count = std::min(ranks.size(), kMostAwaited);
    out.u32(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) out.i64(ranks[i]);
}

Status read_ranks(ByteReader& in, std::vector<Rank>& ranks) {
    std::uint32_t count = 0;
    PCCL_TRY(in.u32(count));
    if (count > kMostAwaited)
        return Status::invalid_argument(concat("a rank that waits for ", count, " others"));
    for (std::uint32_t i = 0; i < count; ++i) {
        std::int64_t rank = 0;
        PCCL_TRY(in.i64(rank));
        ranks.push_back(static_cast<Rank>(rank));
    }
    return Status::ok();
}

void write(ByteWriter& out, const OtherGroupWait& other_group_wait) {
    out.raw(std::as_bytes(std::span(other_group_wait.group)));
    out.text(std::string_view(other_group_wait.name).substr(0, kLongestName));
    out.i64(other_group_wait.rank);
    out.text(std::string_view(other_group_wait.operation).substr(0, kLongestOperation));
    out.u64(other_group_wait.sequence);
    write_ranks(out, other_group_wait.awaited);
}

Status read(ByteReader& in, OtherGroupWait& other_group_wait) {
    std::int64_t rank = 0;
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(other_group_wait.group))));
    PCCL_TRY(in.text(other_group_wait.name, kLongestName));
    PCCL_TRY(in.i64(rank));
    PCCL_TRY(in.text(other_group_wait.operation, kLongestOperation));
    PCCL_TRY(in.u64(other_group_wait.sequence));
    other_group_wait.rank = static_cast<Rank>(rank);
    return read_ranks(in, other_group_wait.awaited);
}

void write(ByteWriter& out, const Shrinking& shrinking) {
    out.u8(static_cast<std::uint8_t>(shrinking.stage));
    if (shrinking.stage == Shrinking::ShrinkStage::kNone) return;
    out.i64(shrinking.lost);
    out.raw(std::as_bytes(std::span(shrinking.call)));
    out.raw(std::as_bytes(std::span(shrinking.list)));
    out.raw(std::as_bytes(std::span(shrinking.pact)));
    out.u32(static_cast<std::uint32_t>(shrinking.staying));
    write_ranks(out, shrinking.left_out);
}

Status read(ByteReader& in, Shrinking& shrinking) {
    std::uint8_t stage = 0;
    std::int64_t lost = 0;
    std::uint32_t staying = 0;
    PCCL_TRY(in.u8(stage));
    if (stage > static_cast<std::uint8_t>(Shrinking::ShrinkStage::kDecided))
        return Status::invalid_argument(concat("stage ", int{stage}, " of a shrink"));
    shrinking.stage = static_cast<Shrinking::ShrinkStage>(stage);
    if (shrinking.stage == Shrinking::ShrinkStage::kNone) return Status::ok();
    PCCL_TRY(in.i64(lost));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(shrinking.call))));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(shrinking.list))));
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(shrinking.pact))));
    PCCL_TRY(in.u32(staying));
    shrinking.lost = static_cast<Rank>(lost);
    shrinking.staying = static_cast<int>(staying);
    return read_ranks(in, shrinking.left_out);
}

}  // namespace

std::string RankStatus::serialise() const {
    ByteWriter out;
    out.status(broken, kLongestText);
    out.i64(reported_by);
    out.u64(sequence);
    out.text(std::string_view(operation).substr(0, kLongestOperation));
    write_ranks(out, awaited);
    out.text(std::string_view(gpu_operation).substr(0, kLongestOperation));
    write_ranks(out, gpu_awaited);
    const auto last = std::span(recent).last(std::min(recent.size(), kMostRecent));
    out.u32(static_cast<std::uint32_t>(last.size()));
    out.raw(std::as_bytes(last));
    write(out, other_group_wait);
    write(out, shrinking);
    switching.write(out);
    out.u32(is_whole ? 1 : 0);
    out.u32(has_one_thread ? 1 : 0);
    return out.take();
}

Result<RankStatus> RankStatus::parse(std::string_view bytes) {
    ByteReader in(bytes);
    RankStatus rank_status;
    std::int64_t reported_by = 0;
    std::uint32_t recent = 0;
    std::uint32_t is_whole = 0;
    std::uint32_t has_one_thread = 0;
    PCCL_TRY(in.status(rank_status.broken, kLongestText));
    PCCL_TRY(in.i64(reported_by));
    PCCL_TRY(in.u64(rank_status.sequence));
    PCCL_TRY(in.text(rank_status.operation, kLongestOperation));
    PCCL_TRY(read_ranks(in, rank_status.awaited));
    PCCL_TRY(in.text(rank_status.gpu_operation, kLongestOperation));
    PCCL_TRY(read_ranks(in, rank_status.gpu_awaited));
    PCCL_TRY(in.u32(recent));
    if (recent > kMostRecent)
        return Status::invalid_argument(
            concat("a report has ", recent, " collectives, more than ", kMostRecent));
    rank_status.recent.resize(recent);
    PCCL_TRY(in.raw(std::as_writable_bytes(std::span(rank_status.recent))));
    PCCL_TRY(read(in, rank_status.other_group_wait));
    PCCL_TRY(read(in, rank_status.shrinking));
    PCCL_TRY(rank_status.switching.read(in));
    PCCL_TRY(in.u32(is_whole));
    PCCL_TRY(in.u32(has_one_thread));
    PCCL_TRY(in.finish());
    rank_status.reported_by = static_cast<Rank>(reported_by);
    rank_status.is_whole = is_whole != 0;
    rank_status.has_one_thread = has_one_thread != 0;
    return rank_status;
}

std::string_view to_string(SurveyedPeer::Liveness state) {
    switch (state) {
        case SurveyedPeer::Liveness::kHere:
            return "here";
        case SurveyedPeer::Liveness::kSilent:
            return "silent";
        case SurveyedPeer::Liveness::kGone:
            return "gone";
    }
    return "unknown";
}

}  // namespace pccl::comm
