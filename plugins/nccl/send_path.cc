// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/send_path.h"

#include <sys/uio.h>

#include <algorithm>

#include "csrc/sys/socket/socket.h"

namespace pccl::nccl {

void Piece::keep() {
    if (is_kept()) return;
    copy_ = std::make_shared<Copy>(std::vector(bytes_.begin(), bytes_.end()));
}

Result<std::size_t> SendPath::write(int socket, std::optional<Piece>& ended) {
    const auto header = std::as_bytes(std::span(&current_->header(), 1));
    const auto bytes = current_->bytes();
    const std::size_t of_header = std::min(sent_, header.size());
    const std::size_t of_bytes = sent_ - of_header;
    std::array<iovec, 2> parts{};
    std::size_t count = 0;
    const auto add = [&](std::span<const std::byte> part) {
        if (!part.empty()) parts[count++] = {const_cast<std::byte*>(part.data()), part.size()};
    };
    add(header.subspan(of_header));
    add(bytes.subspan(of_bytes));
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken,
                          sys::send_some(socket, std::span(parts).first(count)));
    sent_ += taken;
    written_ += taken;
    if (sent_ == header.size() + bytes.size()) end_piece(ended);
    return taken;
}

void SendPath::end_piece(std::optional<Piece>& ended) {
    if (tracks_) waiting_.push_back({.piece = *current_, .end = written_});
    ended = std::move(current_);
    current_.reset();
}

std::vector<Piece> SendPath::take_acknowledged(int socket) {
    std::vector<Piece> arrived;
    if (waiting_.empty()) return arrived;
    const std::uint64_t missing = sys::unacknowledged_bytes(socket);
    const std::uint64_t acknowledged = written_ - std::min(missing, written_);
    while (!waiting_.empty() && waiting_.front().end <= acknowledged) {
        arrived.push_back(std::move(waiting_.front().piece));
        waiting_.pop_front();
    }
    return arrived;
}

std::vector<Piece> SendPath::unconfirmed() const {
    std::vector<Piece> pieces;
    for (const Waiting& each : waiting_) pieces.push_back(each.piece);
    if (current_) pieces.push_back(*current_);
    return pieces;
}

void SendPath::keep_current() {
    if (current_) current_->keep();
}

void SendPath::set_arrived_before(std::uint32_t end) {
    for (const Waiting& each : waiting_)
        if (each.piece.header().is_before(end)) each.piece.set_arrived();
    if (current_ && current_->header().is_before(end)) current_->set_arrived();
}

bool SendPath::owes_any() const {
    return (current_ && current_->is_owed()) ||
           std::ranges::any_of(waiting_, [](const Waiting& each) { return each.piece.is_owed(); });
}

}  // namespace pccl::nccl
