// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/posts.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::transport {
namespace {

bool is_within(std::uint64_t from, std::uint64_t bytes, std::uint64_t size) {
    return from <= size && bytes <= size - from;
}

Status out_of(std::string_view side, std::uint64_t from, std::uint64_t bytes, std::uint64_t size) {
    return Status::invalid_argument(
        concat(bytes, " bytes at ", from, " of the ", side, " registration, which has ", size));
}

/// Returns the error of an invalid piece.
Status what_is_wrong(const RmaPiece& piece) {
    if (piece.local == nullptr || piece.remote == nullptr)
        return Status::invalid_argument("a piece without a local and a remote registration");
    const std::uint64_t size = piece.local->memory().bytes;
    if (!is_within(piece.at, piece.bytes, size))
        return out_of("local", piece.at, piece.bytes, size);
    return out_of("remote", piece.there, piece.bytes, piece.remote->bytes);
}

/// Check of consecutive pieces, many of which belong to one registration.
class PieceCheck {
   public:
    bool is_good(const RmaPiece& piece) {
        if (piece.local == nullptr || piece.remote == nullptr) return false;
        if (piece.local != std::exchange(local_, piece.local)) bytes_ = local_->memory().bytes;
        return is_within(piece.at, piece.bytes, bytes_) &&
               is_within(piece.there, piece.bytes, piece.remote->bytes);
    }

   private:
    const Registration* local_ = nullptr;  // the last one
    std::uint64_t bytes_ = 0;              // its size
};

}  // namespace

Result<std::size_t> valid_prefix(std::span<const RmaPiece> pieces, std::size_t room) {
    const std::size_t most = std::min(pieces.size(), room);
    PieceCheck check;
    for (std::size_t i = 0; i < most; ++i) {
        if (check.is_good(pieces[i])) continue;
        if (i > 0) return i;
        return what_is_wrong(pieces[i]);
    }
    return most;
}

Status check_all(std::span<const RmaPiece> pieces) {
    if (pieces.empty()) return Status::invalid_argument("no pieces");
    PCCL_ASSIGN_OR_RETURN(const std::size_t valid, valid_prefix(pieces, pieces.size()));
    return valid == pieces.size() ? Status::ok() : what_is_wrong(pieces[valid]);
}

RmaPost& RmaPosts::begin(std::uint64_t ticket, std::size_t pieces) {
    return open_.emplace_back(RmaPost{.ticket = ticket, .pieces = pieces, .status = {}});
}

void RmaPosts::finish(RmaPost& post, const Status& status, std::size_t pieces) {
    if (!status.is_ok()) {
        if (post.status.is_ok()) post.status = status;
        post.failed += pieces;
        failed_ += pieces;
    }
    post.pieces -= pieces;
    if (post.pieces > 0) return;
    complete_.push_back(post);
    const auto found =
        std::ranges::find_if(open_, [&](const auto& each) { return &each == &post; });
    open_.erase(found);
}

void RmaPosts::fail_all(const Status& status) {
    for (RmaPost& post : open_) {
        if (post.status.is_ok()) post.status = status;
        complete_.push_back(post);
    }
    open_.clear();
}

std::size_t RmaPosts::take_completions(std::span<RmaCompletion> into) {
    const std::size_t count = std::min(into.size(), complete_.size());
    for (std::size_t i = 0; i < count; ++i) {
        const RmaPost& post = complete_.front();
        reported_ += post.failed;
        into[i] = {.ticket = post.ticket, .status = post.status};
        complete_.pop_front();
    }
    return count;
}

}  // namespace pccl::transport
