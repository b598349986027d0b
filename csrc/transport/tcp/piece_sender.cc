// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/piece_sender.h"

#include <sys/uio.h>

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/path_counters.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {
namespace {

// Bytes wait in a socket for about this long at most: a piece in a longer queue would hold up those
// that other paths have carried meanwhile.
constexpr double kQueueSeconds = 3e-3;
// Any socket takes twice this much while its peer does not read: all that schedules rely on.
constexpr std::size_t kLeastLimit = 128 * kKiB;
constexpr std::size_t kMostLimit = 2 * kMiB;
constexpr Duration kBetweenRates = std::chrono::milliseconds(10);

}  // namespace

Result<std::size_t> PieceSender::send(std::span<const Bytes> parts, Flush flush) {
    pieces_.divide(parts, lanes_.size());
    PCCL_TRY(pump());
    std::size_t taken = 0;
    while (!has_next() && has_room()) {
        const std::size_t count = pieces_.append(parts, taken, flush == Flush::kNow);
        if (count == 0) break;
        taken += count;
        PCCL_TRY(pump());
    }
    return taken;
}

bool PieceSender::has_room() {
    std::vector<sys::Interest> outputs;
    for (const std::size_t index : candidates())
        outputs.push_back({.fd = lanes_[index].socket->fd(), .output = true});
    // The kernel reports when one of those that have no room has some.
    return !outputs.empty() && sys::wait_for_any(outputs, Duration::zero());
}

Result<bool> PieceSender::flush() {
    pieces_.end_piece();
    PCCL_TRY(pump());
    return !has_rest();
}

bool PieceSender::has_rest() {
    return has_next() || std::ranges::any_of(lanes_, [](const Lane& lane) {
               return lane.is_open() && !lane.state.is_silent && lane.state.current != nullptr;
           });
}

Status PieceSender::pump() {
    if (pieces_.is_crowded()) read_receipts();
    for (Lane& lane : lanes_) {
        if (lane.is_open() && lane.state.current != nullptr) write(lane);
    }
    while (has_next() && give_next()) {
    }
    const Lane* ended = nullptr;
    for (const Lane& lane : lanes_) {
        if (lane.is_open()) return Status::ok();
        if (!lane.state.fault.is_ok()) ended = &lane;
    }
    return ended == nullptr ? Status::ok() : ended->state.fault;
}

bool PieceSender::has_next() {
    while (!again_.empty() && again_.front() < pieces_.begin()) again_.pop_front();
    return !again_.empty() || unsent_ < pieces_.end();
}

void PieceSender::take_next() {
    if (again_.empty())
        ++unsent_;
    else
        again_.pop_front();
}

bool PieceSender::give_next() {
    for (const std::size_t index : candidates()) {
        Lane& lane = lanes_[index];
        lane.state.current = pieces_[next()];
        lane.state.sent = 0;
        const std::size_t taken = write(lane);
        if (taken == 0) {
            lane.state.current.reset();
            continue;
        }
        lane.state.given.push_back(next());
        take_next();
        turn_ = index + 1;
        return true;
    }
    return false;
}

std::span<const std::size_t> PieceSender::candidates() {
    order_.clear();
    const bool any_is_well = std::ranges::any_of(
        lanes_, [](const Lane& lane) { return lane.is_open() && !lane.state.is_silent; });
    for (std::size_t step = 0; step < lanes_.size(); ++step) {
        const std::size_t index = (turn_ + step) % lanes_.size();
        const Lane& lane = lanes_[index];
        const bool is_idle = lane.is_open() && lane.state.current == nullptr;
        if (is_idle && !(lane.state.is_silent && any_is_well)) order_.push_back(index);
    }
    if (order_.size() < 2 || !has_next()) return order_;
    for (const std::size_t index : order_)
        lanes_[index].state.seconds = seconds_until_sent(lanes_[index]);
    std::ranges::stable_sort(order_, {},
                             [&](std::size_t index) { return lanes_[index].state.seconds; });
    return order_;
}

double PieceSender::seconds_until_sent(const Lane& lane) const {
    double fastest = 0;
    for (const Lane& each : lanes_) fastest = std::max(fastest, each.state.rate);
    if (fastest == 0) return 0;
    const std::size_t waiting = sys::unsent_bytes(lane.socket->fd());
    const std::size_t own = pieces_[next()]->size();
    return static_cast<double>(waiting + own) / (lane.state.rate > 0 ? lane.state.rate : fastest);
}

std::size_t PieceSender::write(Lane& lane) {
    const Piece& piece = *lane.state.current;
    const std::size_t of_header = std::min(lane.state.sent, sizeof piece.header);
    const std::size_t of_bytes = lane.state.sent - of_header;
    auto* const header =
        reinterpret_cast<std::byte*>(const_cast<PieceHeader*>(&piece.header)) + of_header;
    const std::array<iovec, 2> parts{{{header, sizeof piece.header - of_header},
                                      {piece.bytes() + of_bytes, piece.size() - of_bytes}}};
    const auto taken = sys::send_some(lane.socket->fd(), parts);
    if (!taken.is_ok()) {
        end(lane, taken.status());
        return 0;
    }
    lane.state.sent += *taken;
    if (lane.state.sent == sizeof piece.header + piece.size()) lane.state.current.reset();
    if (*taken > 0) measure(lane, system_clock().now());
    return *taken;
}

void PieceSender::measure(Lane& lane, TimePoint now) {
    if (now - lane.state.rated < kBetweenRates) return;
    lane.state.rated = now;
    lane.state.rate = static_cast<double>(sys::delivery_rate(lane.socket->fd()));
    const auto wanted = static_cast<std::size_t>(lane.state.rate * kQueueSeconds);
    const std::size_t limit =
        std::clamp(wanted / kLeastLimit * kLeastLimit, kLeastLimit, kMostLimit);
    if (limit != lane.state.limit) sys::notify_once_unsent_below(lane.socket->fd(), limit);
    lane.state.limit = limit;
}

void PieceSender::end(Lane& lane, const Status& fault) {
    lane.state.fault = fault;
    pass_on(lane);
    lane.state.current.reset();
}

void PieceSender::pass_on(Lane& lane) {
    for (const PieceNumber number : lane.state.given)
        if (number >= pieces_.begin()) again_.push_back(number);
    lane.state.given.clear();
    std::ranges::sort(again_);
}

void PieceSender::read_receipts() {
    for (Lane& lane : lanes_)
        if (lane.is_open()) read_receipts(lane);
}

void PieceSender::read_receipts(Lane& lane) {
    const auto whole = std::as_writable_bytes(std::span(&lane.state.receipt, 1));
    for (;;) {
        const auto got =
            sys::receive_some(lane.socket->fd(), whole.subspan(lane.state.receipt_bytes));
        if (!got.is_ok()) return end(lane, got.status());
        if (*got == 0) return;
        lane.state.receipt_bytes = (lane.state.receipt_bytes + *got) % whole.size();
        if (lane.state.receipt_bytes > 0) continue;
        if (lane.state.receipt.next > unsent_)
            return end(lane, Status::invalid_argument("it confirms pieces that were not sent"));
        confirm(lane.state.receipt.next);
    }
}

void PieceSender::confirm(PieceNumber next) {
    if (next <= pieces_.begin()) return;
    pieces_.confirm(next);
    for (Lane& lane : lanes_)
        while (!lane.state.given.empty() && lane.state.given.front() < next)
            lane.state.given.pop_front();
}

void PieceSender::use(std::size_t index, WatchedSocket socket) {
    while (lanes_.size() <= index) lanes_.push_back({.state = LaneState(peer_timeout_)});
    Lane& lane = lanes_[index];
    if (lane.socket) pass_on(lane);
    lane.socket.emplace(std::move(socket));
    lane.state = LaneState(peer_timeout_);
}

void PieceSender::avoid(std::size_t index, bool is_silent) {
    Lane& lane = lanes_[index];
    if (is_silent && !lane.state.is_silent && has_other(lane)) pass_on(lane);
    lane.state.is_silent = is_silent;
}

bool PieceSender::has_other(const Lane& lane) const {
    return std::ranges::any_of(lanes_, [&](const Lane& other) {
        return &other != &lane && other.is_open() && !other.state.is_silent;
    });
}

bool PieceSender::has_in_flight() const {
    return std::ranges::any_of(lanes_, [](const Lane& lane) {
        return lane.is_open() && !lane.state.is_silent &&
               sys::unacknowledged_bytes(lane.socket->fd()) > 0;
    });
}

void PieceSender::end_stream() const {
    for (const Lane& lane : lanes_)
        if (lane.socket) sys::end_sending(lane.socket->fd());
}

PathVerdict PieceSender::check(std::size_t index, TimePoint now, bool others_answer) {
    Lane& lane = lanes_[index];
    if (!lane.is_open()) return lane.socket ? PathVerdict::kLost : PathVerdict::kWell;
    return lane.state.health.check(lane.socket->fd(), now, others_answer);
}

int PieceSender::socket(std::size_t index) const {
    return lanes_[index].socket ? lanes_[index].socket->fd() : -1;
}

}  // namespace pccl::transport::tcp
