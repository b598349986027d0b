// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/shm/shm_executor.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/collective/geometry.h"
#include "csrc/sys/cpu/streaming.h"

namespace pccl::comm {
namespace {

// Where helpers divide a copy: whole pages of other ranks' memory are read at once.
constexpr std::size_t kCopyGrain = 4096;

/// Returns the index of a reader's part in a giver's slot, which contains no part for the giver
/// itself.
Rank part_for(Rank reader, Rank giver) { return reader < giver ? reader : reader - 1; }

std::size_t quotient_up(std::size_t count, std::size_t unit) { return (count + unit - 1) / unit; }

}  // namespace

ShmExecutor::ShmExecutor(ShmSegment& segment, int helpers)
    : segment_(segment),
      reads_(helpers, sys::usable_cores(), "reads of other ranks' memory"),
      copies_(helpers, sys::usable_cores(), "copies"),
      reductions_(helpers, sys::usable_cores(), "reductions") {}

void ShmExecutor::start(const ShmPlan& plan, const abi::CollectiveHeader& header,
                        const Collective& collective) {
    plan_ = plan;
    header_ = header;
    collective_ = &collective;
    element_bytes_ = size_of(collective.type);
    if (reduces(collective.kind)) reduction_ = {collective.type, collective.op, segment_.ranks()};
    sequence_ = segment_.next_sequence();
    rounds_ = count_rounds();
    round_ = 0;
    lends_memory_ = false;
    begin_round();
}

void ShmExecutor::begin_round() {
    taken_ = 0;
    doing_ = round_of(collective_->kind, plan_.scatters_first, collective_->root, round_);
    stage_ = ShmStage::kPost;
}

std::size_t ShmExecutor::count_rounds() const {
    const std::size_t count = longest(*collective_);
    const auto ranks = static_cast<std::size_t>(segment_.ranks());
    const std::size_t window = plan_.window;
    const std::size_t windows = std::max<std::size_t>(
        quotient_up(count, plan_.scatters_first ? window * ranks : window), 1);
    return plan_.scatters_first ? 2 * windows : windows;
}

Result<bool> ShmExecutor::progress(bool& moved) {
    const std::uint64_t waits = segment_.waits();
    while (stage_ != ShmStage::kDone) {
        const Result<bool> went_on = step(moved);
        if (went_on.is_ok() && *went_on) continue;
        // A newly awaited rank may have posted before this rank published its wait, without a
        // wakeup: poll once more.
        moved |= segment_.waits() != waits;
        return went_on;
    }
    return true;
}

Result<bool> ShmExecutor::step(bool& moved) {
    if (stage_ == ShmStage::kPost) return post(moved);
    if (stage_ == ShmStage::kConsume) return consume(moved);
    const Result<bool> read = segment_.is_read(now());
    if (read.is_ok() && *read) stage_ = ShmStage::kDone;
    return read;
}

Result<bool> ShmExecutor::post(bool& moved) {
    if (doing_.gives(segment_.self())) {
        Result<bool> free = segment_.may_write(now());
        if (!free.is_ok() || !*free) return free;
        publish();
        moved = true;
    }
    if (!copies_own_last()) copy_own();
    stage_ = ShmStage::kConsume;
    return true;
}

void ShmExecutor::publish() {
    if (round_ == 0) segment_.set_header(now(), header_);
    if (doing_.in_parts)
        give_parts();
    else
        post_whole();
    segment_.post(now(), doing_.reader);
}

void ShmExecutor::post_whole() {
    const std::span<std::byte> span = outgoing(segment_.self());
    for (Rank reader = 0; reader < segment_.ranks(); ++reader) set_piece(reader, span);
    if (goes_directly(span.size())) {
        lends_memory_ = true;
        return;
    }
    std::byte* const slot = segment_.make_slot(now(), 1, span.size(), plan_.own_cache);
    segment_.put(slot, span.data(), span.size(), segment_.self());
}

void ShmExecutor::give_parts() {
    std::size_t most = 0;
    for (Rank reader = 0; reader < segment_.ranks(); ++reader) {
        const std::span<std::byte> span = outgoing(reader);
        set_piece(reader, span);
        if (reader == segment_.self()) continue;
        if (goes_directly(span.size()))
            lends_memory_ = true;
        else
            most = std::max(most, span.size());
    }
    const auto parts = static_cast<std::size_t>(segment_.ranks() - 1);
    std::byte* const slot = segment_.make_slot(now(), parts, most, plan_.own_cache);
    for (Rank reader = 0; reader < segment_.ranks(); ++reader) {
        const std::span<std::byte> span = outgoing(reader);
        if (reader != segment_.self() && !goes_directly(span.size()))
            segment_.put(slot + static_cast<std::size_t>(part_for(reader, segment_.self())) *
                                    ShmSegment::stride(most),
                         span.data(), span.size(), reader);
    }
}

/// Publishes the address of the data for a reader, and their length if only the two ranks have it.
void ShmExecutor::set_piece(Rank reader, std::span<std::byte> span) {
    const bool sends_length = round_ == 0 && is_of_pairs(header_);
    if (!plan_.is_direct && !sends_length) return;
    const std::span<const Block> blocks = collective_->inputs;
    const std::size_t index = blocks.size() == 1 ? 0 : static_cast<std::size_t>(reader);
    const std::size_t bytes = sends_length ? blocks[index].count * element_bytes_ : span.size();
    segment_.own_pieces(now())[static_cast<std::size_t>(reader)] = {
        reinterpret_cast<std::uint64_t>(span.data()), bytes};
}

bool ShmExecutor::goes_directly(std::size_t bytes) const {
    return plan_.is_direct && (!is_of_pairs(header_) || bytes > plan_.inline_bytes);
}

Result<bool> ShmExecutor::consume(bool& moved) {
    const bool reads = doing_.reads(segment_.self());
    const std::size_t sources = reads ? source_count() : 0;
    for (; taken_ < sources; ++taken_) {
        const Rank giver = source(taken_);
        PCCL_ASSIGN_OR_RETURN(const bool ready, segment_.has_posted(giver, now()));
        if (!ready) return false;
        moved = true;
        if (round_ == 0) PCCL_TRY(check(giver));
        if (!doing_.reduces) PCCL_TRY(copy_from(giver));
    }
    if (copies_own_last()) copy_own();
    if (reads && doing_.reduces) PCCL_TRY(plan_.is_direct ? reduce_directly() : reduce());
    end_round();
    moved = true;
    return true;
}

void ShmExecutor::end_round() {
    const bool last = round_ + 1 == rounds_;
    segment_.have_read(position_of(sequence_, last ? kLastRound : round_));
    if (last) {
        stage_ = lends_memory_ ? ShmStage::kLinger : ShmStage::kDone;
        return;
    }
    ++round_;
    begin_round();
}

Status ShmExecutor::check(Rank source) const {
    PCCL_TRY(compare(header_, segment_.header(source, now()), {segment_.self(), source}));
    if (!is_of_pairs(header_)) return Status::ok();
    const std::span<const Block> blocks = collective_->outputs;
    const std::size_t index = blocks.size() == 1 ? 0 : static_cast<std::size_t>(source);
    abi::CollectiveHeader ours = header_;
    abi::CollectiveHeader theirs = header_;
    ours.count = blocks[index].count;
    theirs.count = segment_.piece(source, now(), segment_.self()).bytes / element_bytes_;
    return compare(ours, theirs, {segment_.self(), source});
}

Status ShmExecutor::copy_from(Rank giver) {
    const std::span<std::byte> to = incoming(giver);
    if (to.empty()) return Status::ok();
    if (goes_directly(to.size())) {
        const std::uint64_t from = segment_.piece(giver, now(), segment_.self()).address;
        return reads_.run(to.size(), kCopyGrain, [&](const sys::ParallelWork::Part& part) {
            return segment_.read_directly(giver, from + part.begin,
                                          to.subspan(part.begin, part.bytes));
        });
    }
    PCCL_ASSIGN_OR_RETURN(const std::byte* const from,
                          segment_.part(giver, now(), own_part(giver), to.size()));
    copy_block(to, from);
    return Status::ok();
}

/// Copies a rank's own block to the output, usually while the others' blocks are in flight.
void ShmExecutor::copy_own() {
    const std::span<const Block> inputs = collective_->inputs;
    const std::span<const Block> outputs = collective_->outputs;
    if (doing_.reduces || plan_.scatters_first) return;
    if (inputs.empty() || outputs.empty()) return;
    const auto self = static_cast<std::size_t>(segment_.self());
    const std::span<std::byte> from = window_of(inputs[inputs.size() == 1 ? 0 : self]);
    const std::span<std::byte> to = window_of(outputs[outputs.size() == 1 ? 0 : self]);
    if (from.data() != to.data())
        copy_block(to.first(std::min(from.size(), to.size())), from.data());
}

/// Returns whether this rank copies its own block last. If two ranks read each other's blocks, both
/// then read the block of rank 0 first: each block is loaded from memory once, for both.
bool ShmExecutor::copies_own_last() const {
    return plan_.is_direct && !doing_.in_parts && segment_.ranks() == 2 && segment_.self() == 1;
}

void ShmExecutor::copy_block(std::span<std::byte> to, const std::byte* from) {
    const auto copy = plan_.streams_results ? stream_bytes : arithmetic::copy_bytes;
    static_cast<void>(copies_.run(to.size(), kCopyGrain, [&](const sys::ParallelWork::Part& part) {
        copy(to.data() + part.begin, from + part.begin, part.bytes);
        return Status::ok();
    }));
}

Status ShmExecutor::reduce() {
    const std::span<std::byte> to = incoming(segment_.self());
    contributions_.clear();
    for (Rank rank = 0; rank < segment_.ranks(); ++rank) {
        contributions_.push_back(own_contribution().data());
        if (rank == segment_.self()) continue;
        PCCL_ASSIGN_OR_RETURN(contributions_.back(),
                              segment_.part(rank, now(), own_part(rank), to.size()));
    }
    reduction_.apply(to.data(), contributions_, to.size() / element_bytes_);
    return Status::ok();
}

Status ShmExecutor::reduce_directly() {
    const auto ranks = static_cast<std::size_t>(segment_.ranks());
    const std::size_t block = reduced_at_once(plan_.own_cache, segment_.ranks());
    const std::span<std::byte> to = incoming(segment_.self());
    const std::size_t workers = static_cast<std::size_t>(reductions_.workers_for(to.size()));
    if (scratch_.size() < workers * ranks * block) scratch_.resize(workers * ranks * block);
    contributions_.resize(workers * ranks);
    return reductions_.run(to.size(), block, [&](const sys::ParallelWork::Part& part) {
        return reduce_part(to, part, block);
    });
}

Status ShmExecutor::reduce_part(std::span<std::byte> to, const sys::ParallelWork::Part& part,
                                std::size_t block) {
    const auto ranks = static_cast<std::size_t>(segment_.ranks());
    const auto self = static_cast<std::size_t>(segment_.self());
    const std::size_t first = static_cast<std::size_t>(part.worker) * ranks;
    const std::span<const std::byte*> contributions(contributions_.data() + first, ranks);
    const std::size_t end = part.begin + part.bytes;
    for (std::size_t done = part.begin; done < end; done += block) {
        const std::size_t bytes = std::min(block, end - done);
        contributions[self] = own_contribution().data() + done;
        // Each rank starts with its neighbour, because the kernel admits one reader of a process at
        // a time.
        for (std::size_t i = 1; i < ranks; ++i) {
            const std::size_t index = (self + i) % ranks;
            const auto rank = static_cast<Rank>(index);
            std::byte* const here = scratch_.data() + (first + index) * block;
            const ReadablePiece piece = segment_.piece(rank, now(), segment_.self());
            PCCL_TRY(segment_.read_directly(rank, piece.address + done, {here, bytes}));
            contributions[index] = here;
        }
        reduction_.apply(to.data() + done, contributions, bytes / element_bytes_);
    }
    return Status::ok();
}

AwaitedRanks ShmExecutor::awaited() const {
    AwaitedRanks ranks;
    if (stage_ == ShmStage::kConsume) {
        for (std::size_t i = taken_; i < source_count(); ++i)
            if (!segment_.shows_posted(source(i), now())) ranks.push_back({source(i)});
    } else if (const Rank reader = segment_.awaited(); reader != kNoRank) {
        ranks.push_back({reader, Awaited::Act::kReceive});
    }
    return ranks;
}

std::size_t ShmExecutor::source_count() const {
    return doing_.giver == ShmRound::kEach ? static_cast<std::size_t>(segment_.ranks()) - 1 : 1;
}

/// Returns a source. Ranks start with their neighbours, so that they do not all read one rank at
/// once.
Rank ShmExecutor::source(std::size_t index) const {
    if (doing_.giver != ShmRound::kEach) return doing_.giver;
    return (segment_.self() + 1 + static_cast<Rank>(index)) % segment_.ranks();
}

std::span<std::byte> ShmExecutor::window_of(const Block& block) const {
    const std::size_t begin = std::min(round_ * plan_.window, block.count);
    const std::size_t count = std::min(plan_.window, block.count - begin);
    return {count == 0 ? nullptr : block.data + begin * element_bytes_, count * element_bytes_};
}

std::span<std::byte> ShmExecutor::part_of(const Block& block, Rank rank) const {
    const Cut cut{.window = plan_.window * static_cast<std::size_t>(segment_.ranks()),
                  .chunks = segment_.ranks(),
                  .grain = chunk_grain(element_bytes_)};
    const ElementRange extent = cut.extent(block.count, round_ / 2, rank);
    return {extent.count == 0 ? nullptr : block.data + extent.begin * element_bytes_,
            extent.count * element_bytes_};
}

std::span<std::byte> ShmExecutor::outgoing(Rank reader) const {
    if (plan_.scatters_first)
        return doing_.in_parts ? part_of(collective_->inputs[0], reader)
                               : part_of(collective_->outputs[0], segment_.self());
    return window_of(collective_->inputs[doing_.in_parts ? static_cast<std::size_t>(reader) : 0]);
}

/// Returns the destination of the data of `giver`; for reductions, that of the result.
std::span<std::byte> ShmExecutor::incoming(Rank giver) const {
    const std::span<const Block> outputs = collective_->outputs;
    if (plan_.scatters_first) return part_of(outputs[0], doing_.reduces ? segment_.self() : giver);
    return window_of(outputs[outputs.size() == 1 ? 0 : static_cast<std::size_t>(giver)]);
}

Rank ShmExecutor::own_part(Rank giver) const {
    return doing_.in_parts ? part_for(segment_.self(), giver) : 0;
}

std::span<std::byte> ShmExecutor::own_contribution() const {
    const std::span<const Block> inputs = collective_->inputs;
    if (plan_.scatters_first) return part_of(inputs[0], segment_.self());
    return window_of(inputs[inputs.size() == 1 ? 0 : static_cast<std::size_t>(segment_.self())]);
}

}  // namespace pccl::comm
