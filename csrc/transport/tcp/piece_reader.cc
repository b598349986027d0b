// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/piece_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {
namespace {

// A small part of the bytes that a sender keeps.
constexpr std::size_t kConfirmBytes = kMiB;
constexpr PieceNumber kConfirmPieces = 64;
constexpr Duration kConfirmIdle = std::chrono::milliseconds(1);
// More than any sender keeps.
constexpr PieceNumber kMostAhead = PieceNumber{1} << 20U;
constexpr std::size_t kMostInStock = 64;
// All that a sender keeps lies before the piece that is due, except one.
constexpr std::size_t kMostEarly = kMostKept + kPieceBytes;

}  // namespace

Result<std::size_t> PieceReader::read(MutableBytes into) {
    std::size_t total = 0;
    while (total < into.size()) {
        std::size_t got = take_early(into.subspan(total));
        if (got == 0) got = read_due(into.subspan(total));
        total += got;
        if (got == 0 && !read_others()) break;
    }
    confirm_if_due(total == 0);
    if (total > 0 || into.empty()) return total;
    PCCL_TRY(fault());
    return total;
}

std::size_t PieceReader::take_early(MutableBytes into) {
    if (early_.empty() || early_.begin()->first != next_) return 0;
    Memory& piece = early_.begin()->second;
    const std::size_t size = piece.size();
    if (done_ >= size) return 0;
    const std::size_t count = std::min(into.size(), size - done_);
    std::memcpy(into.data(), piece.data() + done_, count);
    if (done_ + count == size) {
        early_bytes_ -= size;
        if (stock_.size() < kMostInStock) stock_.push_back(std::move(piece));
        early_.erase(early_.begin());
    }
    advance(count, size);
    return count;
}

void PieceReader::advance(std::size_t bytes, std::size_t piece_bytes) {
    done_ += bytes;
    unconfirmed_ += bytes;
    if (done_ < piece_bytes) return;
    done_ = 0;
    ++next_;
}

std::size_t PieceReader::read_due(MutableBytes into) {
    for (std::size_t step = 0; step < lanes_.size(); ++step) {
        const std::size_t index = (latest_ + step) % lanes_.size();
        Lane& lane = lanes_[index];
        if (!find_piece(lane) || lane.state.header.number != next_ || lane.state.early) continue;
        const std::size_t got = read_due(lane, into);
        if (got > 0) latest_ = index;
        if (got > 0) return got;
    }
    return 0;
}

std::size_t PieceReader::read_due(Lane& lane, MutableBytes into) {
    LaneState& state = lane.state;
    if (state.header.bytes <= done_) {
        end(lane, Status::invalid_argument("a piece comes again with another length"));
        return 0;
    }
    // Another socket had its front, and is silent now.
    while (state.taken < done_)
        if (skip(lane, done_ - state.taken) == 0) return 0;
    const std::size_t got = receive(lane, into.first(std::min(into.size(), lane.left())));
    if (got == 0) return 0;
    state.taken += got;
    const std::size_t size = state.header.bytes;
    if (state.taken == size) state.header_bytes = 0;
    advance(got, size);
    return got;
}

bool PieceReader::read_others() {
    bool has_any = false;
    for (Lane& lane : lanes_)
        while (read_other(lane)) has_any = true;
    return has_any;
}

bool PieceReader::read_other(Lane& lane) {
    if (!find_piece(lane)) return false;
    LaneState& state = lane.state;
    const PieceNumber number = state.header.number;
    if (number == next_ && !state.early) return false;
    if (!state.early && (number < next_ || early_.contains(number))) {
        has_needless_ = true;
        return skip(lane, lane.left()) > 0;
    }
    if (!state.early) {
        if (early_bytes_ + state.header.bytes > kMostEarly) {
            end(lane, Status::invalid_argument("the connection runs farther ahead than it may"));
            return false;
        }
        if (stock_.empty()) stock_.emplace_back();
        state.early = std::move(stock_.back());
        stock_.pop_back();
        state.early->resize(state.header.bytes);
    }
    const std::size_t got =
        receive(lane, MutableBytes(*state.early).subspan(state.taken, lane.left()));
    state.taken += got;
    if (got == 0 || lane.left() > 0) return got > 0;
    state.header_bytes = 0;
    Memory piece = std::move(*state.early);
    state.early.reset();
    const std::size_t size = piece.size();
    if (number >= next_ && early_.try_emplace(number, std::move(piece)).second)
        early_bytes_ += size;
    else
        has_needless_ = true;
    return true;
}

bool PieceReader::find_piece(Lane& lane) {
    if (!lane.is_open()) return false;
    if (lane.has_piece()) return true;
    LaneState& state = lane.state;
    const auto whole = std::as_writable_bytes(std::span(&state.header, 1));
    state.header_bytes += receive(lane, whole.subspan(state.header_bytes));
    if (!lane.has_piece()) return false;
    state.taken = 0;
    const PieceHeader& header = state.header;
    const bool has_size = header.bytes >= 1 && header.bytes <= kPieceBytes;
    if (has_size && header.number < next_ + kMostAhead) return true;
    end(lane, Status::invalid_argument("the connection carries bytes that are no piece"));
    return false;
}

std::size_t PieceReader::receive(Lane& lane, MutableBytes into) {
    const auto got = sys::receive_some(lane.socket->fd(), into);
    if (got.is_ok()) return *got;
    end(lane, got.status());
    return 0;
}

std::size_t PieceReader::skip(Lane& lane, std::size_t bytes) {
    constexpr std::size_t kScratch = 16 * kKiB;
    std::array<std::byte, kScratch> scratch;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const std::size_t got =
        receive(lane, MutableBytes(scratch).first(std::min(bytes, scratch.size())));
    lane.state.taken += got;
    if (lane.left() == 0) lane.state.header_bytes = 0;
    return got;
}

void PieceReader::end(Lane& lane, const Status& fault) {
    lane.state.fault = fault;
    lane.state.header_bytes = 0;
    lane.state.early.reset();
}

Status PieceReader::fault() const {
    const Lane* ended = nullptr;
    for (const Lane& lane : lanes_) {
        if (lane.is_open()) return Status::ok();
        if (lane.socket) ended = &lane;
    }
    return ended == nullptr ? Status::ok() : ended->state.fault;
}

void PieceReader::confirm_if_due(bool is_idle) {
    const bool is_much = unconfirmed_ >= kConfirmBytes || next_ - confirmed_ >= kConfirmPieces;
    if (is_much) return send_receipt();
    if (!is_idle || (next_ == confirmed_ && !has_needless_)) return;
    const TimePoint now = system_clock().now();
    if (now - confirmed_at_ < kConfirmIdle) return;
    confirmed_at_ = now;
    send_receipt();
}

void PieceReader::send_receipt() {
    for (std::size_t step = 0; step < lanes_.size(); ++step) {
        Lane& lane = lanes_[(latest_ + step) % lanes_.size()];
        if (!lane.is_open() || !send_receipt(lane)) continue;
        confirmed_ = next_;
        unconfirmed_ = 0;
        has_needless_ = false;
        return;
    }
}

bool PieceReader::send_receipt(Lane& lane) const {
    LaneState& state = lane.state;
    if (state.receipt_left == 0) {
        state.receipt = {.next = next_};
        state.receipt_left = sizeof state.receipt;
    }
    const auto rest = std::as_bytes(std::span(&state.receipt, 1)).last(state.receipt_left);
    const auto sent = sys::send_some(lane.socket->fd(), rest);
    // A socket of which the sender reads nothing takes a part, or none.
    if (!sent.is_ok()) return false;
    state.receipt_left -= *sent;
    return state.receipt_left == 0 && state.receipt.next == next_;
}

void PieceReader::use(std::size_t index, WatchedSocket socket) {
    while (lanes_.size() <= index) lanes_.emplace_back();
    lanes_[index].socket.emplace(std::move(socket));
    lanes_[index].state = {};
}

bool PieceReader::is_drained() const {
    return std::ranges::all_of(lanes_, [](const Lane& lane) {
        return !lane.is_open() || (!lane.state.early && sys::peer_has_closed(lane.socket->fd()));
    });
}

void PieceReader::end(const Status& reason, std::chrono::milliseconds peer_timeout) const {
    for (const Lane& lane : lanes_) {
        if (!lane.socket) continue;
        if (reason.code() == StatusCode::kPeerLost)
            sys::abandon(lane.socket->fd(), peer_timeout);
        else
            sys::shut_down(lane.socket->fd());
    }
}

}  // namespace pccl::transport::tcp
