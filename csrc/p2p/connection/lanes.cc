// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/lanes.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/connection_setup.h"
#include "csrc/sys/host.h"
#include "csrc/transport/tcp/wire.h"

namespace pccl::p2p {
namespace {

constexpr std::size_t kShareOfDescriptors = 4;

}  // namespace

std::shared_ptr<LaneBudget> LaneBudget::of_process(int data_sockets) {
    constexpr std::size_t kMost = 1 << 16;
    const transport::tcp::SocketPurpose purpose{.data_sockets =
                                                    static_cast<std::uint32_t>(data_sockets)};
    const std::size_t descriptors = std::size_t{2} * purpose.sockets();  // of both streams
    const std::size_t lanes = sys::most_descriptors() / kShareOfDescriptors / descriptors;
    return std::make_shared<LaneBudget>(static_cast<int>(std::min(lanes, kMost)));
}

Lanes::~Lanes() {
    for (; taken_ > 0; --taken_) budget_->put_back();
}

void Lanes::allow(std::size_t count, transport::RmaBundle& bundle) {
    if (transport_ == nullptr || budget_ == nullptr) return;
    allowed_ = std::min(count, opening_.size());
    bundle_ = &bundle;
    for (std::size_t lane = 0; lane < early_.size(); ++lane)
        if (early_.at(lane).stream != nullptr)
            arrived(lane, std::move(early_.at(lane).stream), early_.at(lane).timeout);
}

void Lanes::open(Duration timeout) {
    for (std::size_t lane = 0; lane < allowed_; ++lane) begin(lane, timeout);
}

void Lanes::begin(std::size_t lane, Duration timeout) {
    if (std::exchange(begun_.at(lane), true)) return;
    if (!budget_->take())
        return leave_out(lane, Status::resource_exhausted("other lanes have the descriptors"));
    ++taken_;
    auto pending = transport_->connect(peer_.address, request_to(peer_), peer_.secret);
    if (!pending.is_ok()) {
        give_back();
        return leave_out(lane, pending.status());
    }
    opening_.at(lane) =
        std::make_unique<OpeningLane>(OpeningLane{.pending = std::move(*pending),
                                                  .streams = {},
                                                  .greetings = greeting(lane, false),
                                                  .reader = {},
                                                  .deadline = Deadline::after(timeout)});
}

std::string Lanes::greeting(std::size_t lane, bool is_ready) const {
    return frame_of(LaneGreeting{
        .number = connection_, .lane = static_cast<std::uint8_t>(lane), .is_ready = is_ready});
}

void Lanes::arrived(std::size_t lane, std::unique_ptr<transport::RecvLink> in, Duration timeout) {
    if (lane < early_.size() && bundle_ == nullptr) {
        early_.at(lane) = {std::move(in), timeout};
        return;
    }
    if (lane < allowed_) begin(lane, timeout);
    const bool is_awaited =
        lane < allowed_ && opening_.at(lane) != nullptr && opening_.at(lane)->streams.in == nullptr;
    if (is_awaited)
        opening_.at(lane)->streams.in = std::move(in);
    else
        in->abort(Status::unavailable(concat("lane ", lane, " is not open on this side")));
}

void Lanes::progress() {
    for (std::size_t lane = 0; lane < allowed_; ++lane) {
        if (opening_.at(lane) == nullptr) continue;
        const auto may_be_used = advance(*opening_.at(lane), lane);
        if (!may_be_used.is_ok()) {
            leave_out(lane, may_be_used.status());
        } else if (*may_be_used) {
            bundle_->add_lane(lane, std::move(opening_.at(lane)->streams));
            ++added_;
            opening_.at(lane).reset();
        }
    }
}

Result<bool> Lanes::advance(OpeningLane& opening, std::size_t lane) const {
    if (opening.pending != nullptr) {
        PCCL_ASSIGN_OR_RETURN(opening.streams.out, opening.pending->advance());
        // Once this side is ready, the peer may use the lane: nothing gives it up any more.
        if (opening.streams.out == nullptr)
            return opening.deadline.passed() ? Result<bool>(opening.pending->timeout_error())
                                             : Result<bool>(false);
        opening.pending.reset();
    }
    PCCL_ASSIGN_OR_RETURN(const bool sent, send_greetings(opening));
    if (opening.streams.in == nullptr) {
        if (opening.deadline.passed()) return Status::timeout("the peer opens no lane in time");
        PCCL_TRY(opening.streams.out->look());
        return false;
    }
    if (!std::exchange(opening.is_ready, true)) {
        opening.greetings += greeting(lane, true);
        return advance(opening, lane);
    }
    if (!sent) return false;  // the answer is taken once, and requests follow it
    PCCL_ASSIGN_OR_RETURN(const auto answer, opening.reader.next(*opening.streams.in));
    if (!answer) return false;
    const auto* const ready = std::get_if<LaneGreeting>(&*answer);
    if (ready == nullptr || !ready->is_ready || ready->lane != lane)
        return Status::peer_lost(kNoRank, "the peer's lane does not begin like one");
    return true;
}

Result<bool> Lanes::send_greetings(OpeningLane& opening) {
    const auto rest = std::as_bytes(std::span(opening.greetings)).subspan(opening.sent);
    if (!rest.empty()) {
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t sent,
            opening.streams.out->send(transport::kRmaChannel, rest, transport::Flush::kNow));
        opening.sent += sent;
    }
    if (opening.sent < opening.greetings.size()) return false;
    return opening.streams.out->flush(transport::kRmaChannel);
}

void Lanes::leave_out(std::size_t lane, const Status& why) {
    log(LogLevel::kInfo, peer_.to_string(), ": large transfers go without lane ", lane, ": ",
        why.message());
    if (why_fewer_.empty()) why_fewer_ = concat("lane ", lane, ": ", why.message());
    if (opening_.at(lane) == nullptr) return;
    end(*opening_.at(lane), why);
    opening_.at(lane).reset();
    give_back();
}

void Lanes::give_back() {
    --taken_;
    budget_->put_back();
}

void Lanes::end(OpeningLane& opening, const Status& reason) {
    if (opening.streams.out != nullptr) opening.streams.out->abort(reason);
    if (opening.streams.in != nullptr) opening.streams.in->abort(reason);
}

LaneReport Lanes::report() const {
    if (!why_fewer_.empty() || added_ >= allowed_) return {added_, why_fewer_};
    const bool are_begun = std::ranges::find(begun_, true) != begun_.end();
    constexpr std::uint64_t kLarge = transport::RmaBundle::kLarge / kMiB;
    return {added_, are_begun ? "they are being opened"
                              : concat("no transfer has had ", kLarge, " MiB or more")};
}

void Lanes::give_up(const Status& reason) {
    allowed_ = 0;
    bundle_ = nullptr;
    for (auto& opening : opening_) {
        if (opening != nullptr) end(*opening, reason);
        opening.reset();
    }
    early_ = {};
}

}  // namespace pccl::p2p
