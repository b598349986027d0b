// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/rma_peer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <pccl/deadline.h>
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

constexpr QueueDepths kInitiator{.sends = 256, .receives = 1};
// Bytes of one request; devices allow 1 GiB and more.
constexpr std::size_t kLongestRequest = 1 * kMiB;
constexpr Duration kEndTimeout = std::chrono::seconds(1);

Status ended_registration() {
    return Status::unavailable(
        "the peer has ended the registration of the memory, or never made it");
}

/// Returns the error of one request, or ok where the path failed and another may work.
Status error_of(const WorkCompletion& completion) {
    switch (completion.status) {
        case IBV_WC_REM_ACCESS_ERR:
        case IBV_WC_REM_INV_REQ_ERR:
            return ended_registration();
        case IBV_WC_LOC_PROT_ERR:
        case IBV_WC_LOC_LEN_ERR:
            return Status::invalid_argument(explain(completion));
        default:
            return Status::ok();
    }
}

}  // namespace

/// Copy of a batch, which ends when all its requests are complete.
class VerbsPeer::VerbsInFlightCopy final : public RmaInFlightCopy {
   public:
    VerbsInFlightCopy(VerbsPeer& peer, std::shared_ptr<VerbsCopy> copy)
        : peer_(peer), copy_(std::move(copy)) {}
    ~VerbsInFlightCopy() override {
        if (copy_->left > 0 || !copy_->flush.reads.empty()) peer_.end_requests();
    }
    VerbsInFlightCopy(const VerbsInFlightCopy&) = delete;
    VerbsInFlightCopy& operator=(const VerbsInFlightCopy&) = delete;

    RmaCopied finish() override {
        const Status link = peer_.progress();
        if (!link.is_ok()) return {.link = link, .pieces = {}};
        if (copy_->left > 0) return {.link = {}, .pieces = {}, .later = true};
        if (!copy_->status.is_ok()) return {.link = {}, .pieces = copy_->status};
        const auto flushed = peer_.flusher_.advance(copy_->flush);
        return {.link = {}, .pieces = flushed.status(), .later = flushed.is_ok() && !*flushed};
    }
    [[nodiscard]] bool precedes_immediates() const override {
        return copy_->precedes_immediates && copy_->status.is_ok();
    }

   private:
    VerbsPeer& peer_;
    const std::shared_ptr<VerbsCopy> copy_;
};

VerbsPeer::VerbsPeer(VerbsSendLink& out, VerbsRecvLink& in,
                     std::shared_ptr<Registrations> registrations,
                     std::vector<std::shared_ptr<Port>> ports, int pairs_of_port)
    : out_(out),
      mailbox_(out, in),
      registrations_(std::move(registrations)),
      ports_(out.ports(), std::move(ports), registrations_),
      responders_(mailbox_, ports_, out.way(), out.peer_name()),
      lanes_(std::min(ports_.initiators().size() * static_cast<std::size_t>(pairs_of_port),
                      LinkEnd::kMostLanes)),
      flusher_(registrations_, ports_.all()) {}

Result<std::shared_ptr<RmaPeerMemory>> VerbsPeer::open(const abi::MemoryDescriptor& memory) {
    PCCL_ASSIGN_OR_RETURN(RemoteKey key, remote_key_of(memory));
    std::byte* flush_into = nullptr;
    if (memory.kind == abi::MemoryKind::kGpu) {
        PCCL_ASSIGN_OR_RETURN(flush_into, registrations_->scratch());
    }
    return std::shared_ptr<RmaPeerMemory>(
        std::make_shared<VerbsMemory>(std::move(key), flush_into));
}

RmaCopied VerbsPeer::copy(RmaPeerMemory&, const RmaCopy&) {
    return {.link = {}, .pieces = Status::internal("an RDMA device moves all bytes")};
}

std::unique_ptr<RmaInFlightCopy> VerbsPeer::begin(const std::shared_ptr<RmaPeerMemory>& memory,
                                                  RmaOp op, const RmaPiecesHere& here) {
    if (!memory->is_open())
        return std::make_unique<RmaEnded>(RmaCopied{.link = {}, .pieces = ended_registration()});
    auto copy = std::make_shared<VerbsCopy>();
    auto requests = requests_of(std::static_pointer_cast<VerbsMemory>(memory), op, here, copy);
    if (!requests.is_ok())
        return std::make_unique<RmaEnded>(RmaCopied{.link = {}, .pieces = requests.status()});
    copy->left = requests->size();
    // Requests of no bytes use scratch memory of the host.
    const auto into_gpu = std::ranges::find(*requests, false, &VerbsRequest::is_of_host);
    if (op == RmaOp::kRead && into_gpu != requests->end())
        copy->flush = {.gpu = here.memory->device, .at = into_gpu->here};
    copy->precedes_immediates =
        !memory->is_of_gpu() && std::ranges::all_of(*requests, [](const VerbsRequest& request) {
            return request.op == RmaOp::kWrite;
        });
    waiting_.add(*requests);
    return std::make_unique<VerbsInFlightCopy>(*this, std::move(copy));
}

Result<std::vector<VerbsRequest>> VerbsPeer::requests_of(
    const std::shared_ptr<VerbsMemory>& memory, RmaOp op, const RmaPiecesHere& here,
    const std::shared_ptr<VerbsCopy>& copy) const {
    std::vector<VerbsRequest> requests;
    requests.reserve(here.pieces.size());
    for (const sys::ProcessPiece& piece : here.pieces) {
        if (piece.here.empty()) {
            // No device compares the key of a request without bytes.
            PCCL_ASSIGN_OR_RETURN(std::byte* const scratch, registrations_->scratch());
            requests.push_back({.op = RmaOp::kRead,
                                .here = scratch,
                                .there = memory->key().address,
                                .bytes = 1,
                                .memory = memory,
                                .copy = copy});
        }
        std::size_t done = 0;
        while (done < piece.here.size()) {
            std::byte* const from = piece.here.data() + done;
            // Adjacent pieces may lie in several registrations.
            PCCL_ASSIGN_OR_RETURN(const LocalPiece local, registrations_->find(from, 0));
            const std::size_t bytes =
                std::min({piece.here.size() - done, local.bytes, kLongestRequest});
            requests.push_back({.op = op,
                                .here = from,
                                .there = memory->key().address + piece.there + done,
                                .bytes = static_cast<std::uint32_t>(bytes),
                                .memory = memory,
                                .copy = copy,
                                .is_of_host = here.memory->kind == abi::MemoryKind::kHost});
            done += bytes;
        }
    }
    return requests;
}

Status VerbsPeer::advance() {
    PCCL_TRY(answer_messages());
    PCCL_TRY(advance_connections());
    PCCL_TRY(progress());
    return mailbox_.send();
}

Status VerbsPeer::progress() {
    for (std::size_t i = 0; i < lanes_.size(); ++i)
        if (lanes_[i].state == RmaLane::State::kOpen) PCCL_TRY(finish_requests(i));
    const bool is_waiting =
        !waiting_.is_empty() ||
        std::ranges::any_of(lanes_, [](const RmaLane& lane) { return !lane.posted.empty(); });
    if (!is_waiting) return Status::ok();
    PCCL_TRY(out_.look_now_and_then());
    return post_waiting();
}

Status VerbsPeer::finish_requests(std::size_t index) {
    RmaLane& lane = lanes_[index];
    Status polled = lane.lane->poll([](const WorkCompletion&) {});
    const std::uint64_t end =
        lane.lane->failure() ? lane.lane->failure()->id : lane.lane->completed() + 1;
    for (std::size_t count = complete_among(lane.posted, end - lane.first_id); count > 0; --count) {
        const VerbsRequest& first = lane.posted.front();
        if (!first.is_immediate())
            first.copy->flush.devices |= std::uint64_t{1} << lane.lane->device();
        complete_first(lane);
    }
    if (polled.is_ok()) return polled;
    // A failed queue itself ends the link.
    if (!lane.lane->failure()) return polled;
    finish_failed(index);
    return Status::ok();
}

void VerbsPeer::complete_first(RmaLane& lane) {
    ++lane.first_id;
    const VerbsRequest& first = lane.posted.front();
    if (first.is_immediate())
        lane.arrived = first.immediate;
    else
        --first.copy->left;
    lane.posted.pop_front();
}

/// Ends the lane's queue pair. Its requests are put back if the peer's device refused one, and
/// therefore executed none behind it. Otherwise they are held: some may have arrived, or arrive
/// late.
void VerbsPeer::finish_failed(std::size_t index) {
    RmaLane& lane = lanes_[index];
    const WorkCompletion failure = *lane.lane->failure();
    const Status error = error_of(failure);
    if (!error.is_ok()) fail_request(lane, failure.id - lane.first_id, error);
    lane.failure = error.is_ok() ? concat(lane.lane->pair().port().name(), ": ", explain(failure))
                                 : std::string();
    // The queue pair must be gone before its requests are posted on another one.
    lane.lane.reset();
    if (lane.immediates > 0) ++lost_pairs_;
    if (lane.posted.empty() || error.code() == StatusCode::kUnavailable) return put_back(lane);
    lane.state = RmaLane::State::kClosing;
    mailbox_.add({.kind = RmaMessage::Kind::kClose,
                  .lane = static_cast<std::uint8_t>(index),
                  .pair = lane.pair,
                  .failure = {},
                  .end = {}});
}

void VerbsPeer::fail_request(RmaLane& lane, std::size_t at, const Status& error) {
    if (at >= lane.posted.size() || lane.posted[at].is_immediate()) return;
    const VerbsRequest& failed = lane.posted[at];
    if (error.code() == StatusCode::kUnavailable) failed.memory->end();
    if (failed.copy->status.is_ok()) failed.copy->status = error;
    --failed.copy->left;
    lane.posted.erase(lane.posted.begin() + static_cast<std::ptrdiff_t>(at));
}

void VerbsPeer::put_back(RmaLane& lane) {
    for (; !lane.posted.empty(); lane.posted.pop_back())
        waiting_.put_back(std::move(lane.posted.back()));
    lane.state = RmaLane::State::kClosed;
    if (!lane.failure.empty()) give_up(lane, lane.failure);
}

void VerbsPeer::give_up(RmaLane& lane, std::string reason) {
    lane.state = RmaLane::State::kBroken;
    lane.failure = std::move(reason);
    log(LogLevel::kWarning, "RDMA access to ", out_.peer_name(), " loses a path: ", lane.failure);
}

RmaImmediates::State VerbsPeer::state_of(const RmaImmediate& posted) const {
    const RmaLane& lane = lanes_[posted.lane];
    if (lane.state != RmaLane::State::kOpen || lane.pair != posted.pair) return State::kLost;
    return lane.arrived >= posted.number ? State::kArrived : State::kInFlight;
}

Status VerbsPeer::open_lane(std::size_t index) {
    RmaLane& lane = lanes_[index];
    const std::shared_ptr<Port> port = ports_.of_initiator(index);
    Result<std::unique_ptr<QueuePair>> pair = QueuePair::create(port, kInitiator);
    if (!pair.is_ok()) {
        give_up(lane, std::string(pair.status().message()));
        return Status::ok();
    }
    const std::size_t device = ports_.device_of(*port);
    lane.lane.emplace(std::move(pair).value(), device);
    lane.first_id = 1;
    ++lane.pair;
    lane.immediates = 0;
    lane.arrived = 0;
    lane.credit = kImmediatesOfPair;
    lane.state = RmaLane::State::kOpening;
    mailbox_.add({.kind = RmaMessage::Kind::kOpen,
                  .lane = static_cast<std::uint8_t>(index),
                  .pair = lane.pair,
                  .failure = {},
                  .end = {.device = static_cast<std::uint8_t>(device),
                          .pair = lane.lane->pair().address()}});
    return Status::ok();
}

Status VerbsPeer::answer_messages() {
    while (!mailbox_.is_full()) {
        PCCL_ASSIGN_OR_RETURN(const auto message, mailbox_.next());
        if (!message) break;
        PCCL_TRY(answer(*message));
    }
    return Status::ok();
}

Status VerbsPeer::answer(const RmaMessage& message) {
    using Kind = RmaMessage::Kind;
    if (message.kind == Kind::kOpen || message.kind == Kind::kClose) {
        mailbox_.add(message.kind == Kind::kOpen ? responders_.open(message)
                                                 : responders_.close(message));
        return Status::ok();
    }
    if (message.lane >= lanes_.size()) return protocol_error("answered for an RDMA path too many");
    if (message.kind == Kind::kOpened) return take_opened(message);
    return message.kind == Kind::kClosed ? take_closed(message) : take_credit(message);
}

Status VerbsPeer::protocol_error(const char* what) const {
    return Status::peer_lost(out_.peer(), concat(out_.peer_name(), " ", what));
}

Status VerbsPeer::advance_connections() {
    responders_.advance();
    bool is_any_settled = false;
    for (RmaLane& lane : lanes_) {
        if (lane.state != RmaLane::State::kConnecting) continue;
        continue_connection(lane);
        is_any_settled = is_any_settled || lane.state != RmaLane::State::kConnecting;
    }
    return is_any_settled ? post_waiting() : Status::ok();
}

void VerbsPeer::continue_connection(RmaLane& lane) {
    const auto connected = lane.connector->advance();
    if (connected.is_ok() && !*connected) return;
    lane.connector.reset();
    lane.state = RmaLane::State::kOpen;
    if (connected.is_ok()) return;
    lane.lane.reset();
    give_up(lane, std::string(connected.status().message()));
}

Status VerbsPeer::take_opened(const RmaMessage& message) {
    RmaLane& lane = lanes_[message.lane];
    if (lane.state != RmaLane::State::kOpening || message.pair != lane.pair)
        return protocol_error("opened an RDMA path that was not requested");
    Status opened = message.failure;
    if (opened.is_ok()) {
        lane.lane->match(message.end);
        lane.connector = ports_.connector(out_.way(), Connector::Role::kInitiator);
        opened = lane.connector->start(std::array{&lane.lane->pair()}, {&message.end, 1});
    }
    if (opened.is_ok()) {
        lane.state = RmaLane::State::kConnecting;
        continue_connection(lane);
    } else {
        lane.connector.reset();
        lane.lane.reset();
        give_up(lane, std::string(opened.message()));
    }
    return lane.state == RmaLane::State::kConnecting ? Status::ok() : post_waiting();
}

Status VerbsPeer::take_closed(const RmaMessage& message) {
    RmaLane& lane = lanes_[message.lane];
    if (lane.state != RmaLane::State::kClosing || message.pair != lane.pair ||
        message.immediates > lane.immediates)
        return protocol_error("closed an RDMA path that was not to be closed");
    // Everything before an immediate that has arrived is complete.
    while (lane.arrived < message.immediates && !lane.posted.empty()) complete_first(lane);
    put_back(lane);
    return post_waiting();
}

Status VerbsPeer::take_credit(const RmaMessage& message) {
    RmaLane& lane = lanes_[message.lane];
    if (message.pair != lane.pair) return Status::ok();  // of a queue pair that has ended
    if (message.immediates > lane.immediates)
        return protocol_error("gave credit for immediates that were not sent");
    const std::uint32_t credit = message.immediates + kImmediatesOfPair;
    if (credit < lane.credit) return protocol_error("took credit for immediates back");
    lane.credit = credit;
    return Status::ok();
}

void VerbsPeer::end_requests() {
    if (std::exchange(is_ended_, true)) return;
    flusher_.end();
    const Deadline deadline = Deadline::after(kEndTimeout);
    for (RmaLane& lane : lanes_) {
        if (lane.state != RmaLane::State::kOpen) continue;  // no request is posted on others
        lane.lane->pair().fail();
        // Every request completes, successfully or not. Its completion is the end of its accesses.
        while (!lane.lane->is_flushed() && !deadline.passed())
            static_cast<void>(lane.lane->poll([](const WorkCompletion&) {}));
        lane.lane.reset();
        lane.state = RmaLane::State::kClosed;
    }
    for (RmaLane& lane : lanes_) lane.posted.clear();
    waiting_.clear();
}

}  // namespace pccl::transport::verbs
