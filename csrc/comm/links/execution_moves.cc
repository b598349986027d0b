// The bytes of Execution: where a step's memory lies, and how it meets the links.
#include <algorithm>

#include "csrc/collective/fingerprint.h"
#include "csrc/comm/links/execution.h"

namespace pccl::comm {

using schedule::Action;
using schedule::Buffer;
using schedule::Slice;
using transport::kCollectiveChannel;

std::size_t Execution::length(const Slice& slice, std::size_t round) const {
    std::size_t bytes = 0;
    for (std::size_t offset = 0;;) {
        const Span part = piece(slice, round, offset);
        if (part.data == nullptr) return bytes;
        bytes += part.bytes;
        offset = bytes;
    }
}

Execution::Span Execution::piece(const Slice& slice, std::size_t round, std::size_t offset) const {
    const int chunks = cut_.chunks;
    const bool is_scratch = slice.buffer == Buffer::kScratch;
    const auto& blocks = slice.buffer == Buffer::kInput ? operands_->inputs : operands_->outputs;
    const int end = slice.offset + slice.count;
    for (int first = slice.offset; first < end;) {
        const int block = first / chunks;
        // Chunks of a block adjoin; scratch chunks stand at fixed strides.
        const int number = is_scratch ? 1 : std::min(end, (block + 1) * chunks) - first;
        const std::size_t count =
            is_scratch ? scratch_count_ : blocks[static_cast<std::size_t>(block)].count;
        const Extent extent = cut_.extent(count, round, first % chunks, number);
        const std::size_t bytes = extent.count * operands_->element_bytes;
        if (offset < bytes) {
            std::byte* base = is_scratch ? const_cast<std::byte*>(scratch_.data()) +
                                               static_cast<std::size_t>(first) * scratch_stride_
                                         : blocks[static_cast<std::size_t>(block)].data +
                                               extent.begin * operands_->element_bytes;
            return {base + offset, bytes - offset};
        }
        offset -= bytes;
        first += number;
    }
    return {};
}

void Execution::copy(const PlanStep& step, std::size_t round) {
    for (std::size_t done = 0;;) {
        const Span from = piece(step.src, round, done);
        const Span to = piece(step.dst, round, done);
        const std::size_t bytes = std::min(from.bytes, to.bytes);
        if (bytes == 0) return;
        if (from.data != to.data) arithmetic::copy_bytes(to.data, from.data, bytes);
        done += bytes;
    }
}

void Execution::reduce(const PlanStep& step, std::size_t round) {
    for (std::size_t done = 0;;) {
        const Span from = piece(step.src, round, done);
        const Span to = piece(step.dst, round, done);
        const std::size_t bytes = std::min(from.bytes, to.bytes);
        if (bytes == 0) return;
        operands_->combine(to.data, to.data, from.data, bytes / operands_->element_bytes);
        done += bytes;
    }
}

Status Execution::receive(Lane& lane, const PlanStep& step, bool& moved) {
    const auto index = static_cast<std::size_t>(step.from);
    ReceivePort& port = receive_ports_[index];
    PCCL_ASSIGN_OR_RETURN(const bool open, open_receive(port, plan_->receive_ports[index], moved));
    if (!open) return Status::ok();
    const bool copies = step.action == Action::kRecv || step.action == Action::kRecvCopySend;
    return copies ? receive_copying(lane, step, *port.link, moved)
                  : receive_reducing(lane, step, *port.link, moved);
}

Status Execution::receive_copying(Lane& lane, const PlanStep& step, transport::RecvLink& link,
                                  bool& moved) {
    while (lane.received < lane.total) {
        const Span to = piece(step.dst, lane.round, lane.received);
        PCCL_ASSIGN_OR_RETURN(const std::size_t bytes,
                              link.receive(kCollectiveChannel, {to.data, to.bytes}));
        if (bytes == 0) break;
        lane.received += bytes;
        moved = true;
    }
    return Status::ok();
}

Status Execution::receive_reducing(Lane& lane, const PlanStep& step, transport::RecvLink& link,
                                   bool& moved) {
    const std::size_t element = operands_->element_bytes;
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
        const std::size_t room = std::min(target(lane, step).bytes, lane.total - lane.received);
        const std::size_t bytes = std::min(here.size(), room) / element * element;
        combine_piece(lane, step, here.data(), bytes);
        link.consume(kCollectiveChannel, bytes);
    }
    return Status::ok();
}

Result<std::size_t> Execution::fill_carry(Lane& lane, transport::RecvLink& link) {
    const std::size_t missing = operands_->element_bytes - lane.carried;
    PCCL_ASSIGN_OR_RETURN(
        const std::size_t bytes,
        link.receive(kCollectiveChannel, {lane.carry.data() + lane.carried, missing}));
    lane.carried += bytes;
    return lane.carried;
}

void Execution::combine_piece(Lane& lane, const PlanStep& step, const std::byte* incoming,
                              std::size_t bytes) {
    const Span to = target(lane, step);
    const Span with = step.src.count > 0 ? piece(step.src, lane.round, lane.received) : to;
    operands_->combine(to.data, with.data, incoming, bytes / operands_->element_bytes);
    lane.received += bytes;
}

Execution::Span Execution::target(Lane& lane, const PlanStep& step) {
    const Span source = step.src.count > 0 ? piece(step.src, lane.round, lane.received) : Span{};
    Span to = step.dst.count > 0
                  ? piece(step.dst, lane.round, lane.received)
                  : Span{lane.unstored.data() + lane.received, lane.total - lane.received};
    if (source.data != nullptr) to.bytes = std::min(to.bytes, source.bytes);
    return to;
}

Execution::Span Execution::outgoing(const Lane& lane, const PlanStep& step) const {
    if (step.from == kNoPort) return piece(step.src, lane.round, lane.sent);
    Span span = step.action == Action::kRecvReduceSend
                    ? Span{const_cast<std::byte*>(lane.unstored.data()) + lane.sent, lane.total}
                    : piece(step.dst, lane.round, lane.sent);
    span.bytes = std::min(span.bytes, lane.received - lane.sent);
    return span;
}

Status Execution::send(Lane& lane, const PlanStep& step, bool& moved) {
    const auto index = static_cast<std::size_t>(step.to);
    SendPort& port = send_ports_[index];
    while (lane.sent < lane.total) {
        const Span span = outgoing(lane, step);
        if (span.bytes == 0) break;
        PCCL_ASSIGN_OR_RETURN(const bool open, open_send(port, plan_->send_ports[index]));
        if (!open) break;
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t bytes,
            port.link->send(kCollectiveChannel, {span.data, span.bytes}, transport::Flush::kNow));
        if (bytes == 0) break;
        lane.sent += bytes;
        moved = true;
    }
    return Status::ok();
}

abi::CollectiveHeader Execution::header_for(const std::vector<Block>& blocks, Rank peer) const {
    abi::CollectiveHeader header = header_;
    if (is_per_pair(plan_->shape.kind) && !blocks.empty())
        header.count = blocks[blocks.size() == 1 ? 0 : static_cast<std::size_t>(peer)].count;
    return header;
}

Result<bool> Execution::open_send(SendPort& port, const schedule::Port& where) {
    if (port.header_sent == sizeof header_) return true;
    if (port.link == nullptr) {
        PCCL_ASSIGN_OR_RETURN(port.link, links_->send_link(where.peer, where.channel));
        if (port.link == nullptr) return false;
        port.header = header_for(operands_->inputs, where.peer);
    }
    const transport::Bytes header = std::as_bytes(std::span(&port.header, 1));
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes,
                          port.link->send(kCollectiveChannel, header.subspan(port.header_sent),
                                          transport::Flush::kLater));
    port.header_sent += bytes;
    return port.header_sent == sizeof header_;
}

Result<bool> Execution::open_receive(ReceivePort& port, const schedule::Port& where, bool& moved) {
    if (port.header_received == sizeof port.header) return true;
    if (port.link == nullptr) port.link = links_->receive_link(where.peer, where.channel);
    if (port.link == nullptr) return false;
    const auto header = std::as_writable_bytes(std::span(&port.header, 1));
    PCCL_ASSIGN_OR_RETURN(
        const std::size_t bytes,
        port.link->receive(kCollectiveChannel, header.subspan(port.header_received)));
    port.header_received += bytes;
    moved |= bytes > 0;
    if (port.header_received < sizeof port.header) return false;
    PCCL_TRY(compare(header_for(operands_->outputs, where.peer), port.header,
                     {.self = self_, .peer = where.peer}));
    return true;
}

}  // namespace pccl::comm
