// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/copy_link.h"

#include <algorithm>

#include "csrc/sys/host.h"

namespace pccl::transport {
namespace {

constexpr std::size_t kMostWaiting = 8192;  // pieces
constexpr std::size_t kMostKnown = 1024;
constexpr std::size_t kMostInFlight = 16;

/// Returns whether `next` continues `last` in both memories.
bool continues(const sys::ProcessPiece& last, const sys::ProcessPiece& next) {
    return last.here.data() + last.here.size() == next.here.data() &&
           last.there + last.here.size() == next.there;
}

/// Returns whether the source and target of `bytes` bytes exceed the last-level cache, a quarter of
/// which is left for others.
bool is_more_than_caches_hold(std::uint64_t bytes) {
    static const std::size_t last = sys::cache_bytes().back();
    return last > 0 && 2 * bytes > last / 4 * 3;
}

bool has_sides_of(const RmaPiece& last, const RmaPiece& next) {
    return last.local == next.local && last.remote == next.remote;
}

}  // namespace

std::unique_ptr<RmaInFlightCopy> RmaPeer::begin(const std::shared_ptr<RmaPeerMemory>&, RmaOp,
                                                const RmaPiecesHere&) {
    const Status status =
        Status::unsupported("this transport moves bytes of host memory alone, not of GPUs");
    return std::make_unique<RmaEnded>(RmaCopied{.link = {}, .pieces = status});
}

Result<std::size_t> RmaCopyLink::post(RmaOp op, std::span<const RmaPiece> pieces,
                                      std::uint64_t ticket) {
    PCCL_TRY(check());
    const std::size_t room = posts_.has_room() ? kMostWaiting - waiting_.size() : 0;
    PCCL_ASSIGN_OR_RETURN(const std::size_t count, valid_prefix(pieces, room));
    if (count == 0) return count;
    RmaPost& post = posts_.begin(ticket, count);
    const std::span<sys::ProcessPiece> added = waiting_.grow(count);
    Move* move = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
        const RmaPiece& piece = pieces[i];
        if (i == 0 || !has_sides_of(pieces[i - 1], piece)) move = &move_of(op, piece, post);
        ++move->pieces;
        move->bytes += piece.bytes;
        added[i] = {.there = piece.there, .here = {move->here->data + piece.at, piece.bytes}};
    }
    taken_ += count;
    // Copy engines begin while more is posted.
    if (waiting_.size() >= sys::kMostProcessPieces) begin_copies();
    return count;
}

Status RmaCopyLink::read_in_order(std::span<const RmaPiece> pieces, std::uint64_t ticket,
                                  const GpuCallerStream& order) {
    PCCL_TRY(check());
    PCCL_TRY(check_all(pieces));
    if (!peer_->keeps_stream_order())
        return Status::unsupported("RDMA devices keep no order with a stream of a GPU");
    const RmaPiece& first = pieces.front();
    PCCL_ASSIGN_OR_RETURN(const auto memory, memory_of(*first.remote));
    const Memory& here = first.local->memory();
    pieces_.clear();
    for (const RmaPiece& piece : pieces)
        add_piece({.there = piece.there, .here = {here.data + piece.at, piece.bytes}});
    ordered_.add(peer_->begin(memory, RmaOp::kRead, {&here, pieces_, &order}), ticket);
    return Status::ok();
}

/// Returns the last move where the piece continues it, or a new one.
RmaCopyLink::Move& RmaCopyLink::move_of(RmaOp op, const RmaPiece& piece, RmaPost& post) {
    const Name there{piece.remote->id, piece.remote->nonce};
    if (moves_.empty() || !moves_.back().takes(post, *piece.local, there)) {
        const auto memory = memory_of(*piece.remote);
        moves_.push_back({.post = &post,
                          .op = op,
                          .local = piece.local,
                          .here = &piece.local->memory(),
                          .there = there,
                          .memory = memory.is_ok() ? *memory : nullptr,
                          .failure = memory.status()});
    }
    return moves_.back();
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

Result<bool> RmaCopyLink::notify(std::span<const std::byte> notification) {
    PCCL_TRY(check());
    PCCL_TRY(check_rma_notification(notification));
    if (!notifications_out_.has_room()) return false;
    const RmaProgress when{.over = taken_, .failed = posts_.reported()};
    std::vector<RmaImmediate> after = post_immediates();
    if (after.empty()) {
        notifications_out_.add(notification, when);
        notifications_out_.reached(progress(), *peer_);
        return true;
    }
    notifications_out_.announce(notification, when, std::move(after));
    const Status sent = notifications_out_.send(*streams_.out);
    if (!sent.is_ok()) return status_.set(sent);
    return true;
}

std::vector<RmaImmediate> RmaCopyLink::post_immediates() {
    const bool may_announce = peer_->has_immediates() && notifications_out_.may_announce() &&
                              posts_.failed() == posts_.reported();
    if (!may_announce) return {};
    begin_unposted();
    const bool is_all_in_flight =
        moves_.empty() && std::ranges::all_of(in_flight_, [](const InFlightBatch& batch) {
            return batch.copy->precedes_immediates();
        });
    if (is_all_in_flight) return peer_->post_immediates();
    peer_->post_begun();
    return {};
}

Status RmaCopyLink::advance() {
    PCCL_TRY(check());
    Status done = peer_->advance();
    notifications_out_.reached(progress(), *peer_);
    if (done.is_ok()) done = notifications_out_.send(*streams_.out);
    return done.is_ok() ? done : status_.set(done);
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
    if (status_.is_set()) fail_all(status_.get());
    std::size_t reported = posts_.take_completions(into);
    reported += ordered_.take_completions(into.subspan(reported));
    if (reported == 0) PCCL_TRY(check());
    return reported;
}

void RmaCopyLink::fail_all(const Status& status) {
    in_flight_.clear();  // before their memory is reported free
    moves_.clear();
    waiting_.clear();
    posts_.fail_all(status);
    ordered_.fail_all(status);
}

Status RmaCopyLink::move_some() {
    PCCL_ASSIGN_OR_RETURN(moved_, ordered_.finish());
    PCCL_TRY(finish_copies());
    if (in_flight_.empty()) drop_failed();
    begin_copies();
    return in_flight_.empty() ? copy_some() : Status::ok();
}

Status RmaCopyLink::copy_some() {
    if (moves_.empty() || moves_.front().is_moved_by_device()) return Status::ok();
    const Batch batch = gather_batch(RmaPeer::kAtOnce);
    Move& first = moves_.front();
    const RmaCopied copied =
        peer_->copy(*first.memory, {.op = first.op,
                                    .pieces = pieces_,
                                    .leaves_caches = is_more_than_caches_hold(first.bytes)});
    PCCL_TRY(copied.link);
    if (copied.later) return Status::ok();
    moved_ = true;
    finish_first(batch.whole, copied.pieces);
    if (batch.begun == 0) return Status::ok();
    shorten_first(batch.begun);
    if (!copied.pieces.is_ok()) finish_first(1, copied.pieces);
    return Status::ok();
}

void RmaCopyLink::begin_copies() {
    begin_unposted();
    peer_->post_begun();
}

void RmaCopyLink::begin_unposted() {
    while (in_flight_.size() < kMostInFlight && begin_copy()) moved_ = true;
}

/// Begins a copy; returns false where the front of the queue has to wait, or is not moved by a
/// device.
bool RmaCopyLink::begin_copy() {
    if (moves_.empty()) return false;
    const Move& first = moves_.front();
    if (!first.is_moved_by_device() || !first.failure.is_ok() || !first.post->status.is_ok())
        return false;
    const Batch batch = gather_batch(peer_->most_in_flight(*first.memory, *first.here));
    InFlightBatch copy_in_flight{
        .copy = peer_->begin(first.memory, first.op, {first.here, pieces_}), .whole = {}};
    if (copy_in_flight.copy == nullptr) return false;
    for (std::size_t left = batch.whole; left > 0; left -= copy_in_flight.whole.back().pieces)
        copy_in_flight.whole.push_back(take_front(left));
    if (batch.begun > 0) {
        copy_in_flight.begun = moves_.front().post;
        shorten_first(batch.begun);
    }
    in_flight_.push_back(std::move(copy_in_flight));
    return true;
}

Status RmaCopyLink::finish_copies() {
    while (!in_flight_.empty()) {
        const RmaCopied copied = in_flight_.front().copy->finish();
        PCCL_TRY(copied.link);
        if (copied.later) return Status::ok();
        moved_ = true;
        finish_copy(in_flight_.front(), copied.pieces);
        in_flight_.pop_front();
    }
    return Status::ok();
}

void RmaCopyLink::finish_copy(const InFlightBatch& copy_in_flight, const Status& status) {
    for (const PostPart& part : copy_in_flight.whole)
        // An earlier part of it may have failed.
        finish_part(part, status.is_ok() ? part.post->status : status);
    if (copy_in_flight.begun != nullptr && copy_in_flight.begun->status.is_ok())
        copy_in_flight.begun->status = status;
}

void RmaCopyLink::shorten_first(std::size_t begun) {
    sys::ProcessPiece& rest = waiting_.front();
    rest = {.there = rest.there + begun, .here = rest.here.subspan(begun)};
}

/// Removes moves from the front that are impossible, or whose post has failed already.
void RmaCopyLink::drop_failed() {
    while (!moves_.empty()) {
        const Move& move = moves_.front();
        const Status status = move.post->status.is_ok() ? move.failure : move.post->status;
        if (status.is_ok()) return;
        finish_first(1, status);
    }
}

RmaCopyLink::Batch RmaCopyLink::gather_batch(std::size_t room) {
    pieces_.clear();
    const auto most = std::min<std::uint64_t>(
        {sys::kMostProcessPieces, notifications_out_.until_next(taken_ - waiting_.size()),
         most_together()});
    Batch batch;
    for (; batch.whole < most; ++batch.whole) {
        const sys::ProcessPiece& rest = waiting_[batch.whole];
        const std::size_t bytes = rest.here.size();
        if (bytes > room) {
            // Small pieces are copied whole; a large one takes several batches.
            if (batch.whole > 0) break;
            batch.begun = room;
            add_piece({.there = rest.there, .here = rest.here.first(room)});
            break;
        }
        add_piece(rest);
        room -= bytes;
    }
    return batch;
}

/// Returns the bytes of the pieces of the first moves that go in one copy.
std::uint64_t RmaCopyLink::most_together() const {
    std::uint64_t pieces = 0;
    for (const Move& move : moves_) {
        if (!goes_with(move, moves_.front()) || pieces >= sys::kMostProcessPieces) break;
        pieces += move.pieces;
    }
    return pieces;
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

RmaCopyLink::PostPart RmaCopyLink::take_front(std::size_t most) {
    Move& first = moves_.front();
    const PostPart part{.post = first.post, .pieces = std::min(most, first.pieces)};
    waiting_.drop(part.pieces);
    first.pieces -= part.pieces;
    if (first.pieces == 0) moves_.pop_front();
    return part;
}

void RmaCopyLink::finish_first(std::size_t pieces, const Status& status) {
    while (pieces > 0) {
        const PostPart part = take_front(pieces);
        pieces -= part.pieces;
        finish_part(part, status);
    }
}

void RmaCopyLink::finish_part(const PostPart& part, const Status& status) {
    posts_.finish(*part.post, status, part.pieces);
    over_ += part.pieces;
    notifications_out_.reached(progress(), *peer_);
}

void RmaCopyLink::forget_ended() {
    latest_ = nullptr;
    std::erase_if(known_, [](const auto& each) { return !each.second->is_open(); });
}

Result<std::optional<std::vector<std::byte>>> RmaCopyLink::next_notification() {
    return notifications_in_.next(*streams_.in, *peer_);
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
