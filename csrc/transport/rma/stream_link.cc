#include "csrc/transport/rma/stream_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/transport/rma/words.h"

namespace pccl::transport {
namespace {

// Until poll() looks up: what the streams buffer, so often.
constexpr int kRounds = 16;
constexpr std::size_t kMostReceived = 1 * kMiB;
// Of a payload, left to come: it goes straight to where it belongs; shorter ones come with others.
constexpr std::size_t kLong = 16 * kKiB;
constexpr std::size_t kMostWritten = 256 * kKiB;  // while no registration can end
constexpr Duration kOnTheWay = std::chrono::milliseconds(200);

RmaFrame frame(RmaFrameKind kind, std::uint64_t number) {
    RmaFrame head{};
    head.magic = kRmaMagic;
    head.kind = kind;
    head.number = number;
    return head;
}

Status status_of(RmaOutcome outcome) {
    switch (outcome) {
        case RmaOutcome::kOk:
            return Status::ok();
        case RmaOutcome::kOutOfBounds:
            return Status::invalid_argument("the peer's registration is smaller than it was told");
        case RmaOutcome::kEnded:
            break;
    }
    return Status::unavailable("the peer has ended the registration of this memory");
}

}  // namespace

Result<std::size_t> RmaStreamLink::post(RmaOp op, std::span<const RmaPiece> pieces,
                                        std::uint64_t ticket) {
    PCCL_TRY(check());
    const std::size_t room = posts_.has_room() ? kRmaWindow - requests_.size() : 0;
    PCCL_ASSIGN_OR_RETURN(const std::size_t count, valid_prefix(pieces, room));
    if (count == 0) return count;
    RmaPost& post = posts_.begin(ticket, count);
    for (const RmaPiece& piece : pieces.first(count)) request(op, piece, post);
    return count;
}

void RmaStreamLink::request(RmaOp op, const RmaPiece& piece, RmaPost& post) {
    const MutableBytes here(piece.local->memory().data + piece.at, piece.bytes);
    const bool writes = op == RmaOp::kWrite;
    RmaFrame head = frame(writes ? RmaFrameKind::kWrite : RmaFrameKind::kRead, next_number_++);
    head.id = piece.remote->id;
    head.nonce = piece.remote->nonce;
    head.offset = piece.there;
    head.bytes = piece.bytes;
    const Memory& memory = piece.local->memory();
    const bool is_of_gpu = memory.kind == abi::MemoryKind::kGpu;
    if (writes && is_of_gpu)
        outbox_.add_gpu_payload(head, memory, piece.at);
    else
        outbox_.add_payload(head, writes ? Bytes(here) : Bytes());
    requests_.push_back(
        {.post = &post,
         .op = op,
         .here = here,
         .number = head.number,
         .sink = is_of_gpu && !writes ? sink_into(memory, piece.at, piece.bytes) : nullptr});
}

std::shared_ptr<GpuSink> RmaStreamLink::sink_into(const Memory& memory, std::size_t at,
                                                  std::uint64_t bytes) {
    const auto step = [this, device = memory.device, to = device_address(memory.data + at)](
                          std::uint64_t offset, MutableBytes stage) {
        return passage_.copy(
            device,
            {.to = to + offset, .from = device_address(stage.data()), .bytes = stage.size()});
    };
    return std::make_shared<GpuSink>(
        GpuTransfer{.passage = passage_, .device = memory.device, .bytes = bytes, .step = step});
}

std::shared_ptr<GpuSink> RmaStreamLink::sink_into(const RmaRange& range, int device) {
    const auto step = [this, range, device](std::uint64_t offset, MutableBytes stage) {
        const RmaRange part{.registration = range.registration,
                            .offset = range.offset + offset,
                            .bytes = stage.size()};
        return registry_->copy(part, [&](const std::byte* at) {
            return passage_.copy(device, {.to = device_address(at),
                                          .from = device_address(stage.data()),
                                          .bytes = stage.size()});
        });
    };
    return std::make_shared<GpuSink>(
        GpuTransfer{.passage = passage_, .device = device, .bytes = range.bytes, .step = step});
}

Result<bool> RmaStreamLink::notify(std::span<const std::byte> word) {
    PCCL_TRY(check());
    PCCL_TRY(check_word(word));
    if (words_sent_ == kRmaWords) return false;
    ++words_sent_;
    RmaFrame head = frame(RmaFrameKind::kWord, 0);
    head.bytes = word.size();
    head.failed = posts_.told();
    outbox_.add_copy(head, word);
    return true;
}

Result<std::size_t> RmaStreamLink::poll(std::span<RmaCompletion> into) {
    static_cast<void>(advance());
    if (status_.is_set()) {
        settle();
        posts_.fail_all(status_.get());
    }
    const std::size_t told = posts_.take(into);
    if (told == 0) PCCL_TRY(check());
    return told;
}

void RmaStreamLink::settle() {
    requests_.clear();
    landing_.clear();
    outbox_.clear();
    write_sink_.reset();
}

Status RmaStreamLink::advance() {
    moved_ = false;
    PCCL_TRY(check());
    const Status carried = carry();
    return carried.is_ok() ? carried : status_.set(carried);
}

Status RmaStreamLink::carry() {
    for (int round = 0; round < kRounds; ++round) {
        PCCL_ASSIGN_OR_RETURN(const bool received, receive_some());
        PCCL_ASSIGN_OR_RETURN(const bool landed, land_reads());
        const auto sent = unsendable_.is_ok() ? send_some() : Result<bool>(false);
        if (!sent.is_ok()) {
            unsendable_ = sent.status();
            since_ = system_clock().now();
        }
        if (!received && !landed && sent.is_ok() && !*sent)
            return unsendable_.is_ok() ? Status::ok() : fade();
        moved_ = true;
    }
    return Status::ok();
}

// What the peer had said and answered before it left still counts. Each stream has sockets of its
// own, so that the end of one may overtake bytes of the other.
Status RmaStreamLink::fade() {
    const Status gone = streams_.in->look();
    PCCL_ASSIGN_OR_RETURN(const bool received, receive_some());
    const bool may_come = gone.is_ok() && system_clock().now() - since_ < kOnTheWay;
    return received || may_come ? Status::ok() : unsendable_;
}

Result<bool> RmaStreamLink::send_some() {
    return outbox_.send(*streams_.out, *registry_, [this](RmaOutcome outcome) {
        ++reads_served_;
        if (outcome != RmaOutcome::kOk) refuse(failed_reads_);
        deliver();
    });
}

Result<bool> RmaStreamLink::receive_some() {
    PCCL_ASSIGN_OR_RETURN(const std::size_t straight, receive_straight());
    if (straight > 0) return true;
    PCCL_ASSIGN_OR_RETURN(const Bytes come, streams_.in->peek(kRmaChannel));
    Bytes here = come.first(std::min(come.size(), kMostReceived));
    const std::size_t most = here.size();
    stalled_ = false;
    while (!here.empty() && !stalled_) PCCL_TRY(take(here));
    const std::size_t count = most - here.size();
    if (count > 0) streams_.in->consume(kRmaChannel, count);
    return count > 0;
}

Result<bool> RmaStreamLink::land_reads() {
    bool landed = false;
    for (; !landing_.empty(); landing_.pop_front()) {
        const Request& first = landing_.front();
        if (first.has_to_land()) {
            PCCL_ASSIGN_OR_RETURN(const bool is_there, first.sink->has_landed());
            if (!is_there) break;
        }
        posts_.finish(*first.post, status_of(first.outcome));
        landed = true;
    }
    return landed;
}

GpuSink* RmaStreamLink::sink() {
    if (head_.kind == RmaFrameKind::kData) return requests_.front().sink.get();
    return head_.kind == RmaFrameKind::kWrite ? write_sink_.get() : nullptr;
}

Status RmaStreamLink::note_failure(const Status& status) {
    const bool is_peers =
        status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kInvalidArgument;
    if (status.is_ok() || head_.kind != RmaFrameKind::kWrite || !is_peers) return status;
    write_outcome_ = outcome_of(status);
    write_sink_.reset();
    return Status::ok();
}

Result<std::size_t> RmaStreamLink::receive_straight() {
    Result<std::size_t> received = std::size_t{0};
    if (left_ < kLong) return received;
    if (GpuSink* const into = sink()) {
        received = receive_into_sink(*into);
    } else if (head_.kind == RmaFrameKind::kData) {
        const MutableBytes here = requests_.front().here.subspan(head_.bytes - left_);
        received =
            streams_.in->receive(kRmaChannel, here.first(std::min(here.size(), kMostReceived)));
    } else if (head_.kind == RmaFrameKind::kWrite && write_outcome_ == RmaOutcome::kOk) {
        RmaRange range = head_.range();
        range.offset += head_.bytes - left_;
        range.bytes = std::min<std::uint64_t>(left_, kMostWritten);
        write_outcome_ = outcome_of(registry_->use(range, [&](MutableBytes there) {
            received = streams_.in->receive(kRmaChannel, there);
        }));
    }
    if (!received.is_ok() || *received == 0) return received;
    left_ -= *received;
    if (left_ == 0) end();
    return received;
}

Result<std::size_t> RmaStreamLink::receive_into_sink(GpuSink& sink) {
    PCCL_ASSIGN_OR_RETURN(const MutableBytes room, sink.room());
    if (room.empty()) return std::size_t{0};
    PCCL_ASSIGN_OR_RETURN(const std::size_t received, streams_.in->receive(kRmaChannel, room));
    if (received > 0) PCCL_TRY(note_failure(sink.fill(received)));
    return received;
}

/// Takes a part off the front of `here`.
Status RmaStreamLink::take(Bytes& here) {
    if (head_bytes_ < sizeof head_) {
        const std::size_t count = std::min(here.size(), sizeof head_ - head_bytes_);
        std::memcpy(reinterpret_cast<std::byte*>(&head_) + head_bytes_, here.data(), count);
        head_bytes_ += count;
        here = here.subspan(count);
        if (head_bytes_ < sizeof head_) return Status::ok();
        PCCL_TRY(begin());
    } else {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(here.size(), left_));
        PCCL_ASSIGN_OR_RETURN(const std::size_t count, take_payload(here.first(most)));
        stalled_ = count == 0;
        left_ -= count;
        here = here.subspan(count);
    }
    if (left_ == 0) end();
    return Status::ok();
}

Status RmaStreamLink::begin() {
    left_ = 0;
    if (head_.magic != kRmaMagic) return nonsense("no message of one-sided access");
    switch (head_.kind) {
        case RmaFrameKind::kWrite:
            return begin_write();
        case RmaFrameKind::kRead:
            return begin_read();
        case RmaFrameKind::kWord:
            return begin_word();
        case RmaFrameKind::kData:
            return begin_data();
        case RmaFrameKind::kDone:
            return done();
        case RmaFrameKind::kTaken:
            return taken();
    }
    return nonsense("a message of no kind");
}

Status RmaStreamLink::begin_write() {
    if (head_.number != next_asked_++) return nonsense("a request out of turn");
    if (outbox_.size() > 2 * (kRmaWindow + kRmaWords)) return nonsense("too many requests");
    left_ = head_.bytes;
    const auto device = registry_->find_device(head_.range());
    write_outcome_ = outcome_of(device.status());
    if (device.is_ok() && *device >= 0) write_sink_ = sink_into(head_.range(), *device);
    return Status::ok();
}

Status RmaStreamLink::begin_read() {
    if (head_.number != next_asked_++) return nonsense("a request out of turn");
    if (outbox_.size() > 2 * (kRmaWindow + kRmaWords)) return nonsense("too many requests");
    RmaFrame answer = head_;
    answer.kind = RmaFrameKind::kData;
    outbox_.add(answer);
    ++reads_asked_;
    return Status::ok();
}

Status RmaStreamLink::begin_word() {
    if (head_.bytes == 0 || head_.bytes > kMostNotification)
        return nonsense(concat("a notification of ", head_.bytes, " bytes"));
    if (words_.size() + inbox_.size() >= kRmaWords) return nonsense("too many notifications");
    left_ = head_.bytes;
    word_.clear();
    return Status::ok();
}

Status RmaStreamLink::begin_data() {
    if (requests_.empty() || requests_.front().number != head_.number ||
        requests_.front().op != RmaOp::kRead || requests_.front().arrived ||
        requests_.front().here.size() != head_.bytes)
        return nonsense("bytes that nobody has asked for");
    left_ = head_.bytes;
    return Status::ok();
}

Status RmaStreamLink::done() {
    if (requests_.empty() || requests_.front().number != head_.number)
        return nonsense("an answer that nobody has asked for");
    Request request = requests_.front();
    if (head_.outcome == RmaOutcome::kOk && request.op == RmaOp::kRead && !request.arrived)
        return nonsense("an answer without bytes");
    requests_.pop_front();
    request.outcome = head_.outcome;
    // All ends are told in the order of their requests.
    if (request.has_to_land() || !landing_.empty())
        landing_.push_back(request);
    else
        posts_.finish(*request.post, status_of(request.outcome));
    return Status::ok();
}

Status RmaStreamLink::taken() {
    if (words_sent_ == 0) return nonsense("a receipt for no notification");
    --words_sent_;
    return Status::ok();
}

Result<std::size_t> RmaStreamLink::take_payload(Bytes bytes) {
    if (GpuSink* const into = sink()) return take_into_sink(*into, bytes);
    const std::uint64_t done = head_.bytes - left_;
    if (head_.kind == RmaFrameKind::kData) {
        std::memcpy(requests_.front().here.data() + done, bytes.data(), bytes.size());
    } else if (head_.kind == RmaFrameKind::kWord) {
        word_.insert(word_.end(), bytes.begin(), bytes.end());
    } else if (write_outcome_ == RmaOutcome::kOk) {
        RmaRange range = head_.range();
        range.offset += done;
        range.bytes = bytes.size();
        write_outcome_ = outcome_of(registry_->use(range, [&](MutableBytes there) {
            std::memcpy(there.data(), bytes.data(), bytes.size());
        }));
    }
    return bytes.size();
}

Result<std::size_t> RmaStreamLink::take_into_sink(GpuSink& sink, Bytes bytes) {
    PCCL_ASSIGN_OR_RETURN(const MutableBytes room, sink.room());
    const std::size_t count = std::min(bytes.size(), room.size());
    if (count == 0) return count;
    std::memcpy(room.data(), bytes.data(), count);
    PCCL_TRY(note_failure(sink.fill(count)));
    return count;
}

void RmaStreamLink::end() {
    head_bytes_ = 0;
    if (head_.kind == RmaFrameKind::kData) requests_.front().arrived = true;
    if (head_.kind == RmaFrameKind::kWrite) end_write();
    if (head_.kind == RmaFrameKind::kWord) end_word();
}

void RmaStreamLink::end_write() {
    // The bytes have moved; is the registration still the same?
    if (write_outcome_ == RmaOutcome::kOk)
        write_outcome_ = outcome_of(registry_->use(head_.range(), [](MutableBytes) {}));
    RmaFrame answer = frame(RmaFrameKind::kDone, head_.number);
    if (write_sink_ != nullptr) return await_landing(answer);
    answer.outcome = write_outcome_;
    if (write_outcome_ != RmaOutcome::kOk) refuse(failed_writes_);
    outbox_.add(answer);
}

void RmaStreamLink::await_landing(const RmaFrame& answer) {
    ++landings_asked_;
    outbox_.add_landing(answer,
                        [this, range = head_.range(), sink = std::exchange(write_sink_, nullptr)] {
                            return landed(*sink, range);
                        });
}

Result<std::optional<RmaOutcome>> RmaStreamLink::landed(GpuSink& sink, const RmaRange& range) {
    const auto is_there = sink.has_landed();
    PCCL_TRY(is_there.status());
    if (!*is_there) return std::optional<RmaOutcome>();
    const RmaOutcome outcome = outcome_of(registry_->find_device(range).status());
    note_landing(outcome);
    return std::optional(outcome);
}

void RmaStreamLink::note_landing(RmaOutcome outcome) {
    ++landings_done_;
    if (outcome != RmaOutcome::kOk) {
        refuse(failed_writes_);
        for (Word& word : words_)
            if (word.behind_landings >= landings_done_) ++word.failed_writes;
    }
    deliver();
}

void RmaStreamLink::end_word() {
    words_.push_back({.bytes = std::exchange(word_, {}),
                      .behind_reads = reads_asked_,
                      .behind_landings = landings_asked_,
                      .failures_known = head_.failed,
                      .failed_writes = failed_writes_});
    deliver();
}

void RmaStreamLink::deliver() {
    for (; !words_.empty(); words_.pop_front()) {
        Word& word = words_.front();
        if (word.behind_reads != reads_served_ || word.behind_landings > landings_done_) return;
        if (word.failures_known == word.failed_writes + failed_reads_)
            inbox_.push_back(std::move(word.bytes));
        else
            credit();
    }
}

void RmaStreamLink::credit() { outbox_.add(frame(RmaFrameKind::kTaken, 0)); }

Result<std::optional<std::vector<std::byte>>> RmaStreamLink::next_notification() {
    if (inbox_.empty()) static_cast<void>(advance());
    if (inbox_.empty()) {
        PCCL_TRY(check());
        return std::optional<std::vector<std::byte>>();
    }
    std::optional<std::vector<std::byte>> word(std::move(inbox_.front()));
    inbox_.pop_front();
    credit();
    return word;
}

Status RmaStreamLink::look() {
    PCCL_TRY(check());
    PCCL_TRY(streams_.out->look());
    return streams_.in->look();
}

void RmaStreamLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    streams_.out->abort(reason);
    streams_.in->abort(reason);
}

void RmaStreamLink::refuse(std::uint64_t& failed) {
    ++failed;
    registry_->note_refusal();
}

Status RmaStreamLink::nonsense(std::string_view what) const {
    return Status::peer_lost(kNoRank, concat("the peer's link sent ", what));
}

}  // namespace pccl::transport
