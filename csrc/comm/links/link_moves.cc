// SPDX-License-Identifier: Apache-2.0

// Data movement of LinkExecutor: locations of a step's memory, and transfers over links.
#include <algorithm>

#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/links/link_executor.h"

namespace pccl::comm {

using schedule::Action;
using schedule::Buffer;
using schedule::Slice;
using schedule::Slices;
using transport::kCollectiveChannel;
using transport::MutableBytes;

std::size_t LinkExecutor::length(const LinkStep& step, std::size_t round) const {
    const Slices& slices = step.dst.is_empty() ? step.src : step.dst;
    SliceCursor cursor;
    while (cursor.slice < slices.size())
        pass(slices, chunks_at(step, slices, cursor, round).size(), cursor);
    return cursor.before;
}

int LinkExecutor::adjoining(const Slice& slice, int chunk) const {
    // Scratch has chunks at fixed strides; a round covers a part of each chunk.
    if (slice.buffer == Buffer::kScratch || is_windowed_) return 1;
    const int first = slice.offset + chunk;
    const int end_of_block = (first / cut_.chunks + 1) * cut_.chunks;
    return std::min(slice.offset + slice.count, end_of_block) - first;
}

MutableBytes LinkExecutor::scratch_at(const LinkStep& step, int chunk, std::size_t number,
                                      std::size_t round) const {
    const std::size_t count =
        step.blocks.empty()
            ? scratch_count_
            : known_blocks(*collective_)[static_cast<std::size_t>(step.blocks[number])].count;
    const ElementRange extent = cut_.extent(count, window_of(round), chunk % cut_.chunks);
    auto* const base =
        const_cast<std::byte*>(scratch_.data()) + round % kScratches * scratch_bytes_;
    return {base + static_cast<std::size_t>(chunk) * scratch_stride_,
            extent.count * element_bytes_};
}

MutableBytes LinkExecutor::chunks_at(const LinkStep& step, const Slices& slices,
                                     const SliceCursor& at, std::size_t round) const {
    const Slice& slice = slices[at.slice];
    const int first = slice.offset + at.chunk;
    if (slice.buffer == Buffer::kScratch) return scratch_at(step, first, at.number, round);
    const auto& blocks =
        slice.buffer == Buffer::kInput ? collective_->inputs : collective_->outputs;
    const Block& memory = blocks[static_cast<std::size_t>(first / cut_.chunks)];
    const int last = first + adjoining(slice, at.chunk) - 1;
    const ElementRange from = cut_.extent(memory.count, window_of(round), first % cut_.chunks);
    const ElementRange to = cut_.extent(memory.count, window_of(round), last % cut_.chunks);
    return {memory.data + from.begin * element_bytes_,
            (to.begin + to.count - from.begin) * element_bytes_};
}

void LinkExecutor::pass(const Slices& slices, std::size_t bytes, SliceCursor& cursor) const {
    const Slice& slice = slices[cursor.slice];
    const int chunks = adjoining(slice, cursor.chunk);
    cursor.before += bytes;
    cursor.chunk += chunks;
    cursor.number += static_cast<std::size_t>(chunks);
    if (cursor.chunk < slice.count) return;
    ++cursor.slice;
    cursor.chunk = 0;
}

MutableBytes LinkExecutor::piece(const LinkStep& step, const Slices& slices, std::size_t round,
                                 std::size_t offset, SliceCursor& cursor) const {
    while (cursor.slice < slices.size()) {
        const MutableBytes chunks = chunks_at(step, slices, cursor, round);
        const std::size_t within = offset - cursor.before;
        if (within < chunks.size()) return chunks.subspan(within);
        pass(slices, chunks.size(), cursor);
    }
    return {};
}

/// Calls move(to, from, bytes) for each run that is contiguous both in src and in dst.
template <typename Move>
void LinkExecutor::for_each_run(const LinkStep& step, std::size_t round, Move move) {
    SliceCursor read;
    SliceCursor written;
    for (std::size_t done = 0;;) {
        const MutableBytes from = piece(step, step.src, round, done, read);
        const MutableBytes to = piece(step, step.dst, round, done, written);
        const std::size_t bytes = std::min(from.size(), to.size());
        if (bytes == 0) return;
        move(to.data(), from.data(), bytes);
        done += bytes;
    }
}

void LinkExecutor::copy(const LinkStep& step, std::size_t round) {
    for_each_run(step, round, [](std::byte* to, const std::byte* from, std::size_t bytes) {
        if (from != to) arithmetic::copy_bytes(to, from, bytes);
    });
}

void LinkExecutor::reduce(const LinkStep& step, std::size_t round) {
    for_each_run(step, round, [this](std::byte* to, const std::byte* from, std::size_t bytes) {
        combine_(to, to, from, bytes / element_bytes_);
    });
}

Status LinkExecutor::receive(LaneCursor& lane, const LinkStep& step, bool& moved) {
    const auto index = static_cast<std::size_t>(step.from);
    OpenPort<transport::RecvLink>& port = receive_ports_[index];
    PCCL_ASSIGN_OR_RETURN(const bool open,
                          open_receive(port, program_->receive_ports[index], moved));
    if (!open) return Status::ok();
    const bool copies = step.action == Action::kRecv || step.action == Action::kRecvCopySend;
    return copies ? receive_copying(lane, step, *port.link, moved)
                  : receive_reducing(lane, step, *port.link, moved);
}

Status LinkExecutor::receive_copying(LaneCursor& lane, const LinkStep& step,
                                     transport::RecvLink& link, bool& moved) {
    while (lane.received < lane.total) {
        const MutableBytes to = piece(step, step.dst, lane.round, lane.received, lane.written);
        PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, link.receive(kCollectiveChannel, to));
        if (bytes == 0) break;
        lane.received += bytes;
        moved = true;
    }
    return Status::ok();
}

Status LinkExecutor::receive_reducing(LaneCursor& lane, const LinkStep& step,
                                      transport::RecvLink& link, bool& moved) {
    const std::size_t element = element_bytes_;
    while (lane.received < lane.total) {
        PCCL_ASSIGN_OR_RETURN(const transport::Bytes here, link.peek(kCollectiveChannel));
        if (here.empty()) break;
        moved = true;
        if (lane.carried > 0 || here.size() < element) {
            PCCL_ASSIGN_OR_RETURN(const std::size_t filled, fill_carry(lane, link));
            if (filled < element) continue;
            combine_piece(lane, step, lane.carry.data(), element);
            lane.carried = 0;
            continue;
        }
        const std::size_t room = std::min(target(lane, step).size(), lane.total - lane.received);
        const std::size_t bytes = std::min(here.size(), room) / element * element;
        combine_piece(lane, step, here.data(), bytes);
        link.consume(kCollectiveChannel, bytes);
    }
    return Status::ok();
}

Result<std::size_t> LinkExecutor::fill_carry(LaneCursor& lane, transport::RecvLink& link) {
    const std::size_t missing = element_bytes_ - lane.carried;
    PCCL_ASSIGN_OR_RETURN(
        const std::size_t bytes,
        link.receive(kCollectiveChannel, {lane.carry.data() + lane.carried, missing}));
    lane.carried += bytes;
    return lane.carried;
}

void LinkExecutor::combine_piece(LaneCursor& lane, const LinkStep& step, const std::byte* incoming,
                                 std::size_t bytes) {
    const MutableBytes to = target(lane, step);
    const MutableBytes with =
        step.src.is_empty() ? to : piece(step, step.src, lane.round, lane.received, lane.read);
    combine_(to.data(), with.data(), incoming, bytes / element_bytes_);
    lane.received += bytes;
}

MutableBytes LinkExecutor::target(LaneCursor& lane, const LinkStep& step) {
    const MutableBytes to =
        step.dst.is_empty()
            ? MutableBytes(lane.unstored.data() + lane.received, lane.total - lane.received)
            : piece(step, step.dst, lane.round, lane.received, lane.written);
    if (step.src.is_empty()) return to;
    const MutableBytes with = piece(step, step.src, lane.round, lane.received, lane.read);
    return to.first(std::min(to.size(), with.size()));
}

std::span<const transport::Bytes> LinkExecutor::outgoing(LaneCursor& lane, const LinkStep& step) {
    const std::size_t end = step.from == kNoPort ? lane.total : lane.received;
    const auto bytes_at = [&](std::size_t at, SliceCursor& cursor) -> transport::Bytes {
        if (step.action == Action::kRecvReduceSend) return {lane.unstored.data() + at, end - at};
        const MutableBytes next =
            piece(step, step.from == kNoPort ? step.src : step.dst, lane.round, at, cursor);
        return next.first(std::min(next.size(), end - at));
    };
    if (lane.sent == end) return {};
    pieces_[0] = bytes_at(lane.sent, lane.outgoing);
    // The link may accept fewer bytes, and the next call then starts from lane.outgoing again.
    SliceCursor ahead = lane.outgoing;
    std::size_t number = 1;
    for (std::size_t at = lane.sent + pieces_[0].size(); at < end && number < kMostPieces;
         at += pieces_[number++].size())
        pieces_[number] = bytes_at(at, ahead);
    return std::span(pieces_).first(number);
}

Status LinkExecutor::send(LaneCursor& lane, const LinkStep& step, bool& moved) {
    const auto index = static_cast<std::size_t>(step.to);
    OpenPort<transport::SendLink>& port = send_ports_[index];
    while (lane.sent < lane.total) {
        const std::span<const transport::Bytes> pieces = outgoing(lane, step);
        if (pieces.empty()) break;
        PCCL_ASSIGN_OR_RETURN(const bool open, open_send(port, program_->send_ports[index]));
        if (!open) break;
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t bytes,
            port.link->send_gathered(kCollectiveChannel, pieces, transport::Flush::kNow));
        if (bytes == 0) break;
        lane.sent += bytes;
        moved = true;
    }
    return Status::ok();
}

abi::CollectiveHeader LinkExecutor::header_for(std::span<const Block> blocks, Rank peer) const {
    abi::CollectiveHeader header = header_;
    if (is_of_pairs(header) && !blocks.empty())
        header.count = blocks[blocks.size() == 1 ? 0 : static_cast<std::size_t>(peer)].count;
    return header;
}

Result<bool> LinkExecutor::open_send(OpenPort<transport::SendLink>& port,
                                     const schedule::PeerPort& where) {
    if (port.is_open()) return true;
    if (port.link == nullptr) {
        PCCL_ASSIGN_OR_RETURN(port.link, links_.send_link(port_of(where)));
        if (port.link == nullptr) return false;
        port.header = header_for(collective_->inputs, where.peer);
    }
    const transport::Bytes header = std::as_bytes(std::span(&port.header, 1));
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes,
                          port.link->send(kCollectiveChannel, header.subspan(port.header_bytes),
                                          transport::Flush::kLater));
    port.header_bytes += bytes;
    return port.is_open();
}

Result<bool> LinkExecutor::open_receive(OpenPort<transport::RecvLink>& port,
                                        const schedule::PeerPort& where, bool& moved) {
    if (port.is_open()) return true;
    if (port.link == nullptr) port.link = links_.receive_link(port_of(where));
    if (port.link == nullptr) return false;
    const auto header = std::as_writable_bytes(std::span(&port.header, 1));
    PCCL_ASSIGN_OR_RETURN(
        const std::size_t bytes,
        port.link->receive(kCollectiveChannel, header.subspan(port.header_bytes)));
    port.header_bytes += bytes;
    moved |= bytes > 0;
    if (!port.is_open()) return false;
    PCCL_TRY(compare(header_for(collective_->outputs, where.peer), port.header,
                     {.self = program_->rank, .peer = where.peer}));
    return true;
}

}  // namespace pccl::comm
