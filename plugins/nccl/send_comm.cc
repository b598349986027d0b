// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/send_comm.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"
#include "plugins/nccl/nccl_log.h"

namespace pccl::nccl {
namespace {

constexpr std::chrono::milliseconds kBetweenReceipts{50};
// A path that carries nothing is found within it.
constexpr Duration kSilenceIsFound = std::chrono::seconds(2);
constexpr Duration kShortestPause = std::chrono::microseconds(20);
constexpr Duration kLongestPause = std::chrono::milliseconds(1);

std::vector<int> sockets_of(const Paths& paths) {
    std::vector<int> sockets(paths.count());
    for (std::size_t i = 0; i < sockets.size(); ++i) sockets[i] = paths.socket(i);
    return sockets;
}

}  // namespace

SendComm::SendComm(Paths paths, std::chrono::milliseconds peer_timeout)
    : paths_(std::move(paths)),
      peer_timeout_(peer_timeout),
      piece_bytes_(is_tracked() ? kPieceBytes : std::numeric_limits<std::size_t>::max()),
      lanes_(paths_.count(), Lane{SendPath(is_tracked()), PathHealth(peer_timeout)}),
      loads_(sockets_of(paths_)) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].setup_bytes = paths_[i].setup_bytes;
}

Result<Request*> SendComm::isend(std::span<const std::byte> bytes) {
    PCCL_TRY(status_);
    Message* const message = messages_.begin_next();
    if (message == nullptr) {
        PCCL_TRY(progress());
        return static_cast<Request*>(nullptr);
    }
    message->data = bytes;
    message->bytes = bytes.size();
    message->given = 0;
    message->left = pieces_in(bytes.size());
    if (is_tracked()) message->has_ended.assign(message->left, false);
    PCCL_TRY(progress());
    return static_cast<Request*>(message);
}

Status SendComm::progress() {
    PCCL_TRY(status_);
    PCCL_TRY(status_ = read_receipts());
    bool has_moved = is_tracked() && collect_acknowledged();
    auto written = write_current();
    if (written.is_ok() && *written) has_moved = true;
    if (written.is_ok()) written = start_pieces();
    if (!written.is_ok()) return status_ = written.status();
    if (!has_moved && !*written) status_ = check_paths();
    return status_;
}

Piece SendComm::piece_of(const Message& message, std::size_t index) const {
    const PieceHeader header{.sequence = message.sequence,
                             .message_bytes = message.bytes,
                             .offset = index == 0 ? 0 : index * piece_bytes_};
    return {header, message.data.subspan(header.offset, header.length(piece_bytes_))};
}

bool SendComm::is_needed(const Piece& piece) {
    const PieceHeader& header = piece.header();
    const Message& message = messages_[header.sequence];
    if (piece.is_kept()) return !piece.has_arrived();
    return message.is_used && message.sequence == header.sequence &&
           !message.has_ended[header.offset / piece_bytes_];
}

void SendComm::end_piece(const Piece& piece) {
    Message& message = messages_[piece.header().sequence];
    if (--message.left == 0) message.is_finished = true;
}

void SendComm::confirm(const Piece& piece) {
    piece.set_arrived();
    Message& message = messages_[piece.header().sequence];
    const std::size_t index = piece.header().offset / piece_bytes_;
    if (!message.is_used || message.sequence != piece.header().sequence || message.has_ended[index])
        return;
    message.has_ended[index] = true;
    end_piece(piece);
}

bool SendComm::collect_acknowledged() {
    bool has_any = false;
    for (std::size_t i = 0; i < paths_.count(); ++i) {
        if (!paths_.is_alive(i)) continue;
        const auto arrived = lanes_[i].pieces.take_acknowledged(paths_.socket(i));
        if (arrived.empty()) continue;
        for (const Piece& piece : arrived) confirm(piece);
        lanes_[i].health.progressed(system_clock().now());
        lanes_[i].is_passed_on = false;
        has_any = true;
    }
    return has_any;
}

Result<bool> SendComm::write_current() {
    bool has_any = false;
    for (std::size_t i = 0; i < paths_.count(); ++i) {
        if (!paths_.is_alive(i) || lanes_[i].pieces.is_idle()) continue;
        if (is_finishing_ && !lanes_[i].pieces.is_current_kept()) continue;
        PCCL_ASSIGN_OR_RETURN(const bool moved, write(i));
        has_any = has_any || moved;
    }
    return has_any;
}

Result<bool> SendComm::start_pieces() {
    bool has_any = false;
    while (!again_.empty() || unsent_ != messages_.end()) {
        const auto path = best_path();
        if (!path) break;
        auto piece = next_piece();
        if (!piece) break;
        lanes_[*path].pieces.begin(std::move(*piece));
        lanes_[*path].is_passed_on = false;
        PCCL_ASSIGN_OR_RETURN(const bool moved, write(*path));
        has_any = has_any || moved;
    }
    return has_any;
}

std::optional<Piece> SendComm::next_piece() {
    while (!again_.empty()) {
        Piece piece = std::move(again_.front());
        again_.pop_front();
        if (!is_needed(piece)) continue;
        // The message may end by the first transmission while this one is under way.
        piece.keep();
        return piece;
    }
    if (unsent_ == messages_.end()) return std::nullopt;
    Message& message = messages_[unsent_];
    const std::size_t index = message.given++;
    if (message.given == pieces_in(message.bytes)) ++unsent_;
    Piece piece = piece_of(message, index);
    if (is_tracked() && message.bytes <= kInlineBytes) {
        piece.keep();
        message.has_ended[index] = true;
        end_piece(piece);
    }
    return piece;
}

std::optional<std::size_t> SendComm::best_path() {
    if (!is_tracked())
        return lanes_.front().pieces.is_idle() ? std::optional<std::size_t>(0) : std::nullopt;
    loads_.measure();
    std::optional<std::size_t> best;
    const bool any_healthy = has_other(paths_.count());
    for (std::size_t i = 0; i < paths_.count(); ++i) {
        if (!paths_.is_alive(i) || !lanes_[i].pieces.has_room()) continue;
        if (any_healthy && lanes_[i].health.is_silent()) continue;
        if (loads_.load(i) < 1.0 && (!best || loads_.load(i) < loads_.load(*best))) best = i;
    }
    return best;
}

Result<bool> SendComm::write(std::size_t path) {
    std::optional<Piece> ended;
    const auto taken = lanes_[path].pieces.write(paths_.socket(path), ended);
    if (!taken.is_ok()) {
        PCCL_TRY(lose(path, taken.status()));
        return true;
    }
    if (*taken == 0) return false;
    if (is_tracked())
        loads_.add(path, *taken);
    else if (ended)
        end_piece(*ended);
    return true;
}

Status SendComm::lose(std::size_t path, const Status& why) {
    // What the peer's host has acknowledged, its process will read.
    for (const Piece& piece : lanes_[path].pieces.take_acknowledged(paths_.socket(path)))
        if (is_tracked()) confirm(piece);
    static_cast<void>(read_receipt(path));
    loads_.forget(path);
    PCCL_TRY(paths_.lose(path, why));
    pass_on(path);
    return Status::ok();
}

Status SendComm::read_receipt(std::size_t path) {
    Lane& lane = lanes_[path];
    while (lane.setup_bytes > 0) {
        std::array<std::byte, sizeof(Identity)> ignored{};
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t got,
            sys::receive_some(paths_.socket(path), std::span(ignored).first(lane.setup_bytes)));
        if (got == 0) return Status::ok();
        lane.setup_bytes -= got;
    }
    const auto whole = std::as_writable_bytes(std::span(&lane.receipt, 1));
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t got,
            sys::receive_some(paths_.socket(path), whole.subspan(lane.receipt_bytes)));
        if (got == 0) return Status::ok();
        lane.receipt_bytes = (lane.receipt_bytes + got) % whole.size();
        if (lane.receipt_bytes > 0) continue;
        if (!is_tracked() || lane.receipt.magic != Receipt::kMagic)
            return Status::mismatch(paths_.peer().rank, "the peer sends bytes that are no receipt");
        if (static_cast<std::int32_t>(lane.receipt.end - unsent_) > 0)
            return Status::mismatch(paths_.peer().rank,
                                    "the peer confirms messages that were not sent");
        for (Lane& each : lanes_) each.pieces.keep_current();
        for (Lane& each : lanes_) each.pieces.set_arrived_before(lane.receipt.end);
        end_messages(lane.receipt.end);
    }
}

Status SendComm::read_receipts() {
    const TimePoint now = system_clock().now();
    if (!is_tracked() || now - receipts_read_ < kBetweenReceipts) return Status::ok();
    receipts_read_ = now;
    for (std::size_t i = 0; i < paths_.count(); ++i)
        if (paths_.is_alive(i) && lanes_[i].pieces.is_busy())
            if (const Status end = read_receipt(i); !end.is_ok()) PCCL_TRY(lose(i, end));
    return Status::ok();
}

void SendComm::end_messages(std::uint32_t end) {
    for (std::uint32_t i = messages_.end() - MessageRing<Message>::size(); i != messages_.end();
         ++i) {
        Message& message = messages_[i];
        const bool is_earlier = static_cast<std::int32_t>(end - message.sequence) > 0;
        if (!message.is_used || message.is_finished || !is_earlier) continue;
        message.has_ended.assign(message.has_ended.size(), true);
        message.is_finished = true;
    }
}

bool SendComm::owes_any() const {
    return std::ranges::any_of(again_, &Piece::is_owed) ||
           std::ranges::any_of(lanes_, [](const Lane& each) { return each.pieces.owes_any(); });
}

void SendComm::finish() {
    is_finishing_ = true;
    unsent_ = messages_.end();
    std::erase_if(again_, [](const Piece& piece) { return !piece.is_owed(); });
    const Deadline deadline = Deadline::after(peer_timeout_ + kSilenceIsFound);
    Duration pause = kShortestPause;
    while (owes_any() && progress().is_ok() && !deadline.passed()) {
        system_clock().sleep_for(pause);
        pause = std::min(2 * pause, kLongestPause);
    }
    if (owes_any())
        nccl_log().warn("a connection to ", paths_.peer().name(),
                        " is closed, and its last messages may not have arrived: ",
                        status_.is_ok() ? "the peer takes no bytes" : status_.message());
}

void SendComm::pass_on(std::size_t path) {
    Lane& lane = lanes_[path];
    if (std::exchange(lane.is_passed_on, true)) return;
    lane.pieces.keep_current();
    for (Piece& piece : lane.pieces.unconfirmed()) again_.push_back(std::move(piece));
}

bool SendComm::has_other(std::size_t path) const {
    for (std::size_t i = 0; i < paths_.count(); ++i)
        if (i != path && paths_.is_alive(i) && !lanes_[i].health.is_silent()) return true;
    return false;
}

Status SendComm::check_paths() {
    const TimePoint now = system_clock().now();
    for (std::size_t i = 0; i < paths_.count(); ++i)
        if (paths_.is_alive(i) && lanes_[i].pieces.is_busy()) PCCL_TRY(check_path(i, now));
    return Status::ok();
}

Status SendComm::check_path(std::size_t path, TimePoint now) {
    Lane& lane = lanes_[path];
    if (!lane.health.is_due(now)) return Status::ok();
    if (const Status end = read_receipt(path); !end.is_ok()) return lose(path, end);
    switch (lane.health.check(paths_.socket(path), now)) {
        case PathVerdict::kWell:
            return Status::ok();
        case PathVerdict::kSilent:
            if (has_other(path)) pass_on(path);
            return Status::ok();
        case PathVerdict::kLost:
            return lose(path, Status::timeout("its host has been silent for too long"));
    }
    return Status::ok();
}

}  // namespace pccl::nccl
