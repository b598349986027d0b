#include "csrc/transport/rma/copy_link.h"

#include <algorithm>

namespace pccl::transport {
namespace {

constexpr std::size_t kMostMoves = 8192;  // waiting
// What poll() copies before it looks up: a fraction of a millisecond's work.
constexpr std::size_t kAtOnce = 4 * kMiB;
constexpr std::size_t kMostKnown = 1024;

/// Whether both continue `last`, here and there.
bool continues(const sys::ProcessPiece& last, const sys::ProcessPiece& next) {
    return last.here.data() + last.here.size() == next.here.data() &&
           last.there + last.here.size() == next.there;
}

}  // namespace

Result<std::size_t> RmaCopyLink::post(RmaOp op, std::span<const RmaPiece> pieces,
                                      std::uint64_t ticket) {
    PCCL_TRY(check());
    const std::size_t room = posts_.has_room() ? kMostMoves - moves_.size() : 0;
    PCCL_ASSIGN_OR_RETURN(const std::size_t count, valid_prefix(pieces, room));
    if (count == 0) return count;
    RmaPost& post = posts_.begin(ticket, count);
    for (const RmaPiece& piece : pieces.first(count)) moves_.push_back(move_for(op, piece, post));
    taken_ += count;
    return count;
}

RmaCopyLink::Move RmaCopyLink::move_for(RmaOp op, const RmaPiece& piece, RmaPost& post) {
    const auto memory = memory_of(*piece.remote);
    return {.post = &post,
            .op = op,
            .memory = memory.is_ok() ? *memory : nullptr,
            .rest = {.there = piece.there,
                     .here = {piece.local->memory().data + piece.at, piece.bytes}},
            .failure = memory.status()};
}

Result<std::shared_ptr<RmaPeerMemory>> RmaCopyLink::memory_of(const abi::MemoryDescriptor& remote) {
    const Name name{remote.id, remote.nonce};
    if (latest_ != nullptr && latest_->first == name) return latest_->second;
    auto found = known_.find(name);
    if (found == known_.end()) {
        PCCL_ASSIGN_OR_RETURN(auto opened, peer_->open(remote));
        latest_ = nullptr;
        // What is known of a registration may keep pages that the peer has given up.
        std::erase_if(known_, [](const auto& each) { return !each.second->is_open(); });
        if (known_.size() >= kMostKnown) known_.clear();
        found = known_.emplace(name, std::move(opened)).first;
    }
    latest_ = &*found;
    return latest_->second;
}

Result<bool> RmaCopyLink::notify(std::span<const std::byte> word) {
    PCCL_TRY(check());
    PCCL_TRY(check_word(word));
    if (!words_out_.has_room()) return false;
    words_out_.add(word, {.over = taken_, .failed = posts_.told()});
    words_out_.reached(progress());
    return true;
}

Status RmaCopyLink::advance() {
    PCCL_TRY(check());
    const Status sent = words_out_.send(*streams_.out);
    return sent.is_ok() ? sent : status_.set(sent);
}

Result<std::size_t> RmaCopyLink::poll(std::span<RmaCompletion> into) {
    moved_ = false;
    if (!status_.is_set()) {
        const Status moved = move_some();
        if (moved.is_ok())
            static_cast<void>(advance());
        else
            static_cast<void>(status_.set(moved));
    }
    if (status_.is_set()) {
        moves_.clear();
        posts_.fail_all(status_.get());
    }
    const std::size_t told = posts_.take(into);
    if (told == 0) PCCL_TRY(check());
    return told;
}

Status RmaCopyLink::move_some() {
    drop_failed();
    if (moves_.empty()) return Status::ok();
    const Batch batch = gather();
    Move& first = moves_.front();
    const RmaCopied copied = peer_->copy(*first.memory, first.op, pieces_);
    PCCL_TRY(copied.link);
    if (copied.later) return Status::ok();
    moved_ = true;
    for (std::size_t i = 0; i < batch.whole; ++i) finish_first(copied.pieces);
    if (batch.begun == 0) return Status::ok();
    sys::ProcessPiece& rest = moves_.front().rest;
    rest = {.there = rest.there + batch.begun, .here = rest.here.subspan(batch.begun)};
    if (!copied.pieces.is_ok()) finish_first(copied.pieces);
    return Status::ok();
}

/// From the front: moves that cannot be, and those whose post has failed already.
void RmaCopyLink::drop_failed() {
    while (!moves_.empty()) {
        const Move& move = moves_.front();
        const Status status = move.post->status.is_ok() ? move.failure : move.post->status;
        if (status.is_ok()) return;
        finish_first(status);
    }
}

RmaCopyLink::Batch RmaCopyLink::gather() {
    pieces_.clear();
    const Move& first = moves_.front();
    const auto most = std::min<std::uint64_t>(
        {moves_.size(), sys::kMostProcessPieces, words_out_.until_next(over_)});
    std::size_t room = kAtOnce;
    Batch batch;
    for (; batch.whole < most; ++batch.whole) {
        const Move& move = moves_[batch.whole];
        if (move.op != first.op || move.memory != first.memory || !move.post->status.is_ok()) break;
        const std::size_t bytes = move.rest.here.size();
        if (bytes > room) {
            // Small moves are done whole; a large one takes several batches.
            if (batch.whole > 0) break;
            batch.begun = room;
            add_piece({.there = move.rest.there, .here = move.rest.here.first(room)});
            break;
        }
        add_piece(move.rest);
        room -= bytes;
    }
    return batch;
}

void RmaCopyLink::add_piece(const sys::ProcessPiece& piece) {
    if (pieces_.empty() || !continues(pieces_.back(), piece)) return pieces_.push_back(piece);
    std::span<std::byte>& here = pieces_.back().here;
    here = {here.data(), here.size() + piece.here.size()};
}

void RmaCopyLink::finish_first(const Status& status) {
    RmaPost& post = *moves_.front().post;
    moves_.pop_front();
    posts_.finish(post, status);
    ++over_;
    words_out_.reached(progress());
}

Result<std::optional<std::vector<std::byte>>> RmaCopyLink::next_notification() {
    return words_in_.next(*streams_.in);
}

Status RmaCopyLink::look() {
    PCCL_TRY(check());
    PCCL_TRY(streams_.out->look());
    return streams_.in->look();
}

void RmaCopyLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    streams_.out->abort(reason);
    streams_.in->abort(reason);
}

}  // namespace pccl::transport
