// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/recv_comm.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::nccl {
namespace {

// Longer than a path takes to deliver what it has; short beside the loss of a path.
constexpr Duration kStall = std::chrono::milliseconds(20);
// More than the kernels at both ends hold of one connection.
constexpr std::size_t kMostEarly = 64 * kMiB;

}  // namespace

RecvComm::RecvComm(Paths paths)
    : paths_(std::move(paths)),
      piece_bytes_(paths_.count() > 1 ? kPieceBytes : std::numeric_limits<std::size_t>::max()),
      lanes_(paths_.count()),
      is_troubled_(paths_.alive() < paths_.count()) {}

RecvComm::~RecvComm() {
    if (paths_.count() > 1) send_receipt();
}

void RecvComm::send_receipt() {
    for (std::size_t i = 0; i < paths_.count(); ++i) {
        if (!paths_.is_alive(i)) continue;
        Lane& lane = lanes_[i];
        if (lane.receipt_sent == sizeof(Receipt)) {
            lane.receipt = {.end = first_};
            lane.receipt_sent = 0;
        }
        const auto left = std::as_bytes(std::span(&lane.receipt, 1)).subspan(lane.receipt_sent);
        // A socket whose peer reads nothing takes a part or none; a later receipt replaces it.
        const auto sent = sys::send_some(paths_.socket(i), left);
        if (sent.is_ok()) lane.receipt_sent += *sent;
    }
}

Result<Request*> RecvComm::irecv(std::span<std::byte> into) {
    PCCL_TRY(status_);
    if (!has_receives()) moved_ = {};
    Message* const message = messages_.begin_next();
    if (message == nullptr) return static_cast<Request*>(nullptr);
    message->into = into;
    message->is_known = false;
    PCCL_TRY(status_ = take_early(message->sequence));
    return static_cast<Request*>(message);
}

Status RecvComm::progress() {
    PCCL_TRY(status_);
    bool has_moved = false;
    for (std::size_t i = 0; i < paths_.count() && has_receives(); ++i) {
        if (!paths_.is_alive(i)) continue;
        const Status fault = read_path(i, has_moved);
        if (fault.is_ok()) continue;
        PCCL_TRY(status_ = end_path(i, fault));
        is_troubled_ = true;
    }
    if (paths_.count() > 1 && has_receives()) watch_for_stall(has_moved);
    return Status::ok();
}

Status RecvComm::end_path(std::size_t path, const Status& fault) {
    if (fault.code() == StatusCode::kMismatch) return fault;
    // The sender takes bytes that its socket has delivered for read: it would not send them again.
    if (fault.code() == StatusCode::kInvalidArgument)
        return Status::peer_lost(paths_.peer().rank,
                                 concat(paths_.peer().name(), ": ", fault.message()));
    return paths_.lose(path, fault);
}

void RecvComm::watch_for_stall(bool has_moved) {
    const TimePoint now = system_clock().now();
    if (has_moved || moved_ == TimePoint{}) moved_ = now;
    takes_early_ = now - moved_ >= kStall && early_bytes_ < kMostEarly;
}

Status RecvComm::read_path(std::size_t path, bool& has_moved) {
    while (has_receives()) {
        PCCL_ASSIGN_OR_RETURN(const bool found,
                              lanes_[path].pieces.find_piece(paths_.socket(path), piece_bytes_));
        if (!found) break;
        PCCL_ASSIGN_OR_RETURN(const bool moved, read_piece(path));
        if (!moved) break;
        has_moved = true;
    }
    return Status::ok();
}

Result<bool> RecvComm::read_piece(std::size_t path) {
    Lane& lane = lanes_[path];
    const PieceHeader header = lane.pieces.header();
    const Place place = place_of(header);
    if (place == Place::kEarly && !lane.early) {
        const std::size_t nodes = early_.size() * sizeof(EarlyPiece);
        if (!takes_early_ || early_bytes_ + nodes >= kMostEarly) return false;
        lane.early.emplace(lane.pieces.left());
    }
    if (place == Place::kWanted) PCCL_TRY(learn_size(messages_[header.sequence], header));
    if (lane.pieces.left() > 0) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t got, read_bytes(path, place));
        if (lane.pieces.left() > 0) return got > 0;
    }
    lane.pieces.end_piece();
    if (lane.early) {
        PCCL_TRY(place_early(header, *std::exchange(lane.early, std::nullopt)));
    } else if (place == Place::kWanted) {
        complete(messages_[header.sequence], header);
    } else {
        is_troubled_ = true;
        send_receipt();
    }
    return true;
}

Result<std::size_t> RecvComm::read_bytes(std::size_t path, Place place) {
    Lane& lane = lanes_[path];
    RecvPath& pieces = lane.pieces;
    if (!lane.early && place == Place::kNeedless) return pieces.skip(paths_.socket(path));
    const PieceHeader& header = pieces.header();
    const std::span<std::byte> into = lane.early
                                          ? std::span(*lane.early)
                                          : messages_[header.sequence].into.subspan(header.offset);
    return pieces.read(paths_.socket(path), into.subspan(pieces.taken(), pieces.left()));
}

Status RecvComm::place_early(const PieceHeader& header, Early bytes) {
    const Place place = place_of(header);
    if (place == Place::kEarly) {
        early_bytes_ += bytes.size();
        const auto [entry, is_new] = early_.try_emplace(PieceKey(header.sequence, header.offset));
        if (!is_new) early_bytes_ -= bytes.size();
        entry->second = {.header = header, .bytes = std::move(bytes)};
    }
    if (place != Place::kWanted) return Status::ok();
    Message& message = messages_[header.sequence];
    PCCL_TRY(learn_size(message, header));
    std::ranges::copy(bytes, message.into.begin() + static_cast<std::ptrdiff_t>(header.offset));
    complete(message, header);
    return Status::ok();
}

Status RecvComm::take_early(std::uint32_t sequence) {
    while (!early_.empty()) {
        const auto first = early_.lower_bound({sequence, 0});
        if (first == early_.end() || first->first.first != sequence) break;
        EarlyPiece piece = std::move(first->second);
        early_.erase(first);
        early_bytes_ -= piece.bytes.size();
        PCCL_TRY(place_early(piece.header, std::move(piece.bytes)));
    }
    return Status::ok();
}

RecvComm::Place RecvComm::place_of(const PieceHeader& header) {
    if (static_cast<std::int32_t>(header.sequence - messages_.end()) >= 0) return Place::kEarly;
    if (static_cast<std::int32_t>(header.sequence - first_) < 0) return Place::kNeedless;
    const Message& message = messages_[header.sequence];
    const bool is_here =
        message.is_finished || (message.is_known && header.message_bytes == message.bytes &&
                                message.has_piece[header.offset / piece_bytes_]);
    return is_here ? Place::kNeedless : Place::kWanted;
}

Status RecvComm::learn_size(Message& message, const PieceHeader& header) {
    if (message.is_known && message.bytes == header.message_bytes) return Status::ok();
    if (message.is_known)
        return Status::mismatch(paths_.peer().rank, "two pieces of one message disagree about it");
    if (header.message_bytes > message.into.size())
        return Status::mismatch(
            paths_.peer().rank,
            concat(
                paths_.peer().name(), " sends ", header.message_bytes, " bytes where ",
                message.into.size(),
                " are expected: ranks may call different collectives, or have different settings "
                "(NCCL_ALGO, NCCL_PROTO)"));
    message.is_known = true;
    message.bytes = header.message_bytes;
    message.left = pieces_of(message.bytes, piece_bytes_);
    message.has_piece.assign(message.left, false);
    return Status::ok();
}

void RecvComm::complete(Message& message, const PieceHeader& header) {
    message.has_piece[header.offset / piece_bytes_] = true;
    if (--message.left > 0) return;
    message.is_finished = true;
    while (has_receives() && messages_[first_].is_finished) ++first_;
    if (is_troubled_) send_receipt();
}

}  // namespace pccl::nccl
