// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <span>

#include "csrc/base/text/text.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/shm_algorithm.h"
#include "csrc/schedule/generators/generators.h"

namespace pccl {
namespace {

constexpr std::uint64_t kShownDigests = 1'000'000;
constexpr std::string_view kAlgorithm = "the algorithm";
constexpr std::string_view kOverlap = "which elements of the output share memory";
constexpr std::string_view kRefusal = "whether their buffers can be used";

bool is_barrier(const abi::CollectiveHeader& header) { return header.root == abi::kBarrierRoot; }

ReduceOp op_of(const abi::CollectiveHeader& header) {
    return static_cast<ReduceOp>(header.reduce_op & ~(abi::kOverlaps | abi::kRefuses));
}

/// Returns "all_reduce #7"
std::string name_of(const abi::CollectiveHeader& header) {
    return concat(fields_of(header).collective, " #", header.sequence);
}

/// Describes the lengths. Those of gather and scatter are always set by pairs alone, and need no
/// text.
std::string lengths_of(const abi::CollectiveHeader& header) {
    if (refuses(header)) return ", refusing a buffer";
    if (overlaps_itself(header)) return ", into elements that share memory";
    if (header.lengths == 0) return {};
    if (!is_of_pairs(header))
        return concat(", blocks of different lengths, digest ", header.lengths % kShownDigests);
    return may_be_even(static_cast<CollectiveKind>(header.kind)) ? ", with split sizes or lists"
                                                                 : "";
}

/// Returns "sum of 1024 float32", "8 int32, root 0"; empty for a barrier.
std::string data_of(const abi::CollectiveHeader& header) {
    if (is_barrier(header)) return {};
    const CallFields call = fields_of(header);
    return concat(call.op.empty() ? "" : concat(call.op, " of "), call.count, " ", call.type,
                  lengths_of(header), call.root == kNoRank ? "" : concat(", root ", call.root));
}

/// Returns "by ring in windows of 1024"
std::string way_of(const abi::CollectiveHeader& header) {
    return concat("by ", algorithm_name(header), " in windows of ", header.window);
}

/// Returns the first field in which two different collectives differ; empty: none of these.
std::string_view field_that_differs(const abi::CollectiveHeader& ours,
                                    const abi::CollectiveHeader& theirs) {
    const bool is_one_kind = ours.kind == theirs.kind && is_barrier(ours) == is_barrier(theirs);
    if (!is_one_kind) return "the collective";
    if (ours.sequence != theirs.sequence) return "the number of earlier collectives";
    if (ours.data_type != theirs.data_type) return "the element type";
    if (op_of(ours) != op_of(theirs)) return "the operator";
    if (ours.root != theirs.root) return "the root";
    if (is_of_pairs(ours) != is_of_pairs(theirs)) return "whether split sizes or lists are given";
    if (refuses(ours) != refuses(theirs)) return kRefusal;
    if (ours.count != theirs.count) return "the number of elements";
    const bool overlaps = overlaps_itself(ours) || overlaps_itself(theirs);
    if (ours.lengths != theirs.lengths || ours.reduce_op != theirs.reduce_op)
        return overlaps ? kOverlap : "the lengths of blocks";
    if (ours.generation != theirs.generation) return "the phase of the network";
    if (ours.over != theirs.over || ours.schedule != theirs.schedule ||
        ours.window != theirs.window)
        return kAlgorithm;
    return {};
}

/// Returns advice about a field that differs.
std::string_view remedy(std::string_view field) {
    if (field == kRefusal) return "the error of the rank that refuses names the right argument";
    if (field == kOverlap)
        return "give outputs whose elements have memory of their own (x.contiguous(), then copy "
               "the result back), or the same on all ranks";
    return kCallAlike;
}

}  // namespace

CallFields fields_of(const abi::CollectiveHeader& header) {
    if (is_barrier(header)) return {.collective = "barrier"};
    const auto kind = static_cast<schedule::CollectiveKind>(header.kind);
    return {.collective = schedule::to_string(kind),
            .op = reduces(kind) ? to_string(op_of(header)) : "",
            .type = to_string(static_cast<DataType>(header.data_type)),
            .count = header.count,
            .root = schedule::is_rooted(kind) ? Rank{header.root} : kNoRank};
}

std::string algorithm_name(const abi::CollectiveHeader& header) {
    if (header.over == abi::Over::kShm)
        return std::string(header.schedule < kShmAlgorithms.size()
                               ? to_string(kShmAlgorithms.at(header.schedule))
                               : "unknown");
    const auto kind = static_cast<schedule::CollectiveKind>(header.kind);
    if (const auto source = schedule::built_in()->find(header.schedule, kind)) return source->name;
    std::array<char, 9> tag{};
    std::snprintf(tag.data(), tag.size(), "%08x", header.schedule);
    return concat("schedule ", tag.data());
}

std::string describe(const abi::CollectiveHeader& header) {
    const std::string data = data_of(header);
    return concat(name_of(header), " (", data, data.empty() ? "" : ", ", way_of(header), ")");
}

std::string describe_call(const abi::CollectiveHeader& header) {
    const std::string data = data_of(header);
    return data.empty() ? name_of(header) : concat(name_of(header), " (", data, ")");
}

Signature signature_of(const Collective& collective) {
    Signature signature{.kind = collective.kind, .type = collective.type};
    signature.is_barrier = collective.is_barrier;
    signature.overlap = collective.overlap;
    signature.is_refused = collective.is_refused;
    if (reduces(collective.kind)) signature.op = collective.op;
    if (schedule::is_rooted(collective.kind)) signature.root = collective.root;
    signature.is_of_pairs = is_of_pairs(collective);
    if (signature.is_of_pairs) return signature;
    const std::span<const Block> blocks = known_blocks(collective);
    std::uint64_t digest = 0xCBF29CE484222325ULL;
    bool even = true;
    for (const Block& block : blocks) {
        signature.count = std::max<std::uint64_t>(signature.count, block.count);
        even &= block.count == blocks.front().count;
        digest = mixed(digest, block.count);
    }
    if (!even) signature.digest = digest;
    return signature;
}

abi::CollectiveHeader header_of(const Signature& signature) {
    const bool overlaps = signature.overlap != 0;
    const std::uint64_t lengths =
        overlaps ? mixed(signature.digest, signature.overlap) : signature.digest;
    return {.magic = abi::kCollectiveMagic,
            .kind = static_cast<std::uint8_t>(signature.kind),
            .data_type = static_cast<std::uint8_t>(signature.type),
            .reduce_op = static_cast<std::uint8_t>(static_cast<unsigned>(signature.op) |
                                                   (overlaps ? abi::kOverlaps : 0U) |
                                                   (signature.is_refused ? abi::kRefuses : 0U)),
            .over = abi::Over::kLinks,
            .root = signature.is_barrier ? abi::kBarrierRoot
                                         : static_cast<std::uint16_t>(signature.root),
            .sequence = 0,
            .generation = 0,
            .count = signature.count,
            .schedule = 0,
            .window = 0,
            .lengths = signature.is_of_pairs ? abi::kLengthsOfPairs : folded(lengths),
            .history = 0};
}

abi::CollectiveHeader common_part(abi::CollectiveHeader header) {
    if (!is_of_pairs(header)) return header;
    header.count = 0;
    header.window = 0;
    return header;
}

std::uint64_t digest_of(const abi::CollectiveHeader& header) {
    std::array<std::uint64_t, sizeof header / sizeof(std::uint64_t)> words{};
    static_assert(sizeof words == sizeof header);
    std::memcpy(words.data(), &header, sizeof header);
    // Words are mixed independently, because this is on the path of every call.
    std::uint64_t digest = 0;
    for (std::size_t i = 0; i < words.size(); ++i)
        digest ^= std::rotl(words[i] * (kOddMultiplier + 2 * i), static_cast<int>(13 * i));
    return spread(digest);
}

std::uint32_t history_after(const abi::CollectiveHeader& header) {
    return static_cast<std::uint32_t>(digest_of(common_part(header)) >> 32U);
}

Status difference(const abi::CollectiveHeader& ours, const abi::CollectiveHeader& theirs,
                  const Sides& sides) {
    const Rank peer = sides.peer;
    if (theirs.magic != abi::kCollectiveMagic)
        return Status::peer_lost(peer, concat("rank ", peer, " sent bytes that are no collective"));
    const std::string_view field = field_that_differs(ours, theirs);
    if (field.empty())
        return Status::mismatch(
            peer, concat("ranks disagree about a collective before ", describe_call(ours),
                         ": rank ", sides.self, " and rank ", peer,
                         " have called different ones (pccl debug shows which); ", kCallAlike));
    const auto side = [is_about_way = field == kAlgorithm](const abi::CollectiveHeader& header) {
        return is_about_way ? describe(header) : describe_call(header);
    };
    return Status::mismatch(
        peer, concat("ranks disagree about ", field, ": rank ", sides.self, " runs ", side(ours),
                     " but rank ", peer, " runs ", side(theirs), "; ", remedy(field)));
}

}  // namespace pccl
