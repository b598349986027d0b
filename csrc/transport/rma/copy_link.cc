#include "csrc/transport/rma/copy_link.h"

#include <algorithm>

namespace pccl::transport {
namespace {

constexpr std::size_t kMostMoves = 8192;  // waiting
constexpr std::size_t kMostKnown = 1024;
constexpr std::size_t kMostFlights = 8;

/// Whether both continue `last`, here and there.
bool continues(const sys::ProcessPiece& last, const sys::ProcessPiece& next) {
    return last.here.data() + last.here.size() == next.here.data() &&
           last.there + last.here.size() == next.there;
}

}  // namespace

std::unique_ptr<RmaFlight> RmaPeer::begin(const std::shared_ptr<RmaPeerMemory>&, RmaOp,
                                          const RmaPiecesHere&) {
    const Status status =
        Status::unsupported("this transport moves bytes of host memory alone, not of GPUs");
    return std::make_unique<RmaEnded>(RmaCopied{.link = {}, .pieces = status});
}

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
            .here = &piece.local->memory(),
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
        forget_ended();
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
        flights_.clear();  // before their memory is told to be free
        moves_.clear();
        posts_.fail_all(status_.get());
    }
    const std::size_t told = posts_.take(into);
    if (told == 0) PCCL_TRY(check());
    return told;
}

Status RmaCopyLink::move_some() {
    PCCL_TRY(land_flights());
    if (flights_.empty()) drop_failed();
    begin_flights();
    return flights_.empty() ? copy_some() : Status::ok();
}

Status RmaCopyLink::copy_some() {
    if (moves_.empty() || moves_.front().is_of_gpu()) return Status::ok();
    const Batch batch = gather(RmaPeer::kAtOnce);
    Move& first = moves_.front();
    const RmaCopied copied = peer_->copy(*first.memory, first.op, pieces_);
    PCCL_TRY(copied.link);
    if (copied.later) return Status::ok();
    moved_ = true;
    for (std::size_t i = 0; i < batch.whole; ++i) finish_first(copied.pieces);
    if (batch.begun == 0) return Status::ok();
    shorten_first(batch.begun);
    if (!copied.pieces.is_ok()) finish_first(copied.pieces);
    return Status::ok();
}

void RmaCopyLink::begin_flights() {
    while (flights_.size() < kMostFlights && begin_flight()) moved_ = true;
}

/// False where the front of the queue has to wait, or is no matter of GPUs.
bool RmaCopyLink::begin_flight() {
    if (moves_.empty()) return false;
    const Move& first = moves_.front();
    if (!first.is_of_gpu() || !first.failure.is_ok() || !first.post->status.is_ok()) return false;
    const Batch batch = gather(peer_->most_in_flight(*first.memory, *first.here));
    Flight flight{.copy = peer_->begin(first.memory, first.op, {first.here, pieces_}), .whole = {}};
    if (flight.copy == nullptr) return false;
    for (std::size_t i = 0; i < batch.whole; ++i) {
        flight.whole.push_back(moves_.front().post);
        moves_.pop_front();
    }
    if (batch.begun > 0) {
        flight.begun = moves_.front().post;
        shorten_first(batch.begun);
    }
    flights_.push_back(std::move(flight));
    return true;
}

Status RmaCopyLink::land_flights() {
    while (!flights_.empty()) {
        const RmaCopied copied = flights_.front().copy->land();
        PCCL_TRY(copied.link);
        if (copied.later) return Status::ok();
        moved_ = true;
        land(flights_.front(), copied.pieces);
        flights_.pop_front();
    }
    return Status::ok();
}

void RmaCopyLink::land(const Flight& flight, const Status& status) {
    for (RmaPost* const post : flight.whole)
        // An earlier part of it may have failed.
        finish(*post, status.is_ok() ? post->status : status);
    if (flight.begun != nullptr && flight.begun->status.is_ok()) flight.begun->status = status;
}

void RmaCopyLink::shorten_first(std::size_t begun) {
    sys::ProcessPiece& rest = moves_.front().rest;
    rest = {.there = rest.there + begun, .here = rest.here.subspan(begun)};
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

RmaCopyLink::Batch RmaCopyLink::gather(std::size_t room) {
    pieces_.clear();
    const Move& first = moves_.front();
    const auto most = std::min<std::uint64_t>(
        {moves_.size(), sys::kMostProcessPieces, words_out_.until_next(over_)});
    Batch batch;
    for (; batch.whole < most; ++batch.whole) {
        const Move& move = moves_[batch.whole];
        if (!goes_with(move, first)) break;
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

bool RmaCopyLink::goes_with(const Move& move, const Move& first) const {
    return move.op == first.op && move.memory == first.memory && move.post->status.is_ok() &&
           move.here->kind == first.here->kind && move.here->device == first.here->device;
}

void RmaCopyLink::add_piece(const sys::ProcessPiece& piece) {
    if (pieces_.empty() || !continues(pieces_.back(), piece)) return pieces_.push_back(piece);
    std::span<std::byte>& here = pieces_.back().here;
    here = {here.data(), here.size() + piece.here.size()};
}

void RmaCopyLink::finish_first(const Status& status) {
    RmaPost& post = *moves_.front().post;
    moves_.pop_front();
    finish(post, status);
}

void RmaCopyLink::finish(RmaPost& post, const Status& status) {
    posts_.finish(post, status);
    ++over_;
    words_out_.reached(progress());
}

void RmaCopyLink::forget_ended() {
    latest_ = nullptr;
    std::erase_if(known_, [](const auto& each) { return !each.second->is_open(); });
}

Result<std::optional<std::vector<std::byte>>> RmaCopyLink::next_notification() {
    return words_in_.next(*streams_.in);
}

Status RmaCopyLink::look() {
    PCCL_TRY(check());
    forget_ended();
    PCCL_TRY(streams_.out->look());
    return streams_.in->look();
}

void RmaCopyLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    streams_.out->abort(reason);
    streams_.in->abort(reason);
}

}  // namespace pccl::transport
