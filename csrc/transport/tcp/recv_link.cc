// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/recv_link.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/assert.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {
namespace {

constexpr std::size_t kMemory = 256 * kKiB;
constexpr Duration kOnTheWay = std::chrono::milliseconds(200);

}  // namespace

Result<Bytes> StripedReader::peek() {
    if (held() == 0 || shown_) fill(window_);
    if (held() == 0 && !fault_.is_ok()) return fault_;
    shown_ = true;
    return Bytes(memory_.get() + begin_, held());
}

void StripedReader::consume(std::size_t count) {
    PCCL_ASSERT(count <= held());
    begin_ += count;
    shown_ = false;
}

Result<std::size_t> StripedReader::receive(MutableBytes into) {
    std::size_t received = take_held(into);
    if (into.size() - received >= kShortRead) {
        window_ = kShortRead;
        received += read(into.subspan(received));
    } else if (received < into.size()) {
        fill(kShortRead);
        received += take_held(into.subspan(received));
    }
    if (received == 0 && !into.empty() && !fault_.is_ok()) return fault_;
    return received;
}

std::size_t StripedReader::take_held(MutableBytes into) {
    const std::size_t count = std::min(held(), into.size());
    if (count > 0) std::memcpy(into.data(), memory_.get() + begin_, count);
    begin_ += count;
    shown_ = false;
    return count;
}

void StripedReader::fill(std::size_t wanted) {
    if (memory_ == nullptr) memory_ = std::make_unique_for_overwrite<std::byte[]>(kMemory);
    if (kMemory - end_ < wanted || held() == 0) {
        if (held() > 0) std::memmove(memory_.get(), memory_.get() + begin_, held());
        end_ = held();
        begin_ = 0;
    }
    const std::size_t room = std::min(wanted, kMemory - end_);
    const std::size_t got = read({memory_.get() + end_, room});
    end_ += got;
    if (got == room) window_ = std::min(2 * window_, kMemory);
}

std::size_t StripedReader::read(MutableBytes into) {
    if (!fault_.is_ok()) return 0;
    const auto got = blocks_.read(into);
    if (got.is_ok()) return *got;
    fault_ = got.status();
    return 0;
}

TcpRecvLink::TcpRecvLink(LinkParts parts)
    : peer_(parts.peer), peer_name_(std::move(parts.peer_name)), watch_(std::move(parts.watch)) {
    for (Stripes& stripes : parts.channels) readers_.emplace_back(std::move(stripes));
}

Result<Bytes> TcpRecvLink::peek(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    StripedReader& reader = readers_[static_cast<std::size_t>(channel)];
    auto here = reader.peek();
    if (here.is_ok() && !here->empty()) return here;
    PCCL_TRY(here.is_ok() ? look_idle(reader) : cause_of(here.status()));
    return Bytes();
}

void TcpRecvLink::consume(ChannelId channel, std::size_t count) {
    readers_[static_cast<std::size_t>(channel)].consume(count);
}

Result<std::size_t> TcpRecvLink::receive(ChannelId channel, MutableBytes into) {
    if (status_.is_set()) return status_.get();
    StripedReader& reader = readers_[static_cast<std::size_t>(channel)];
    auto received = reader.receive(into);
    if (received.is_ok() && (*received > 0 || into.empty())) return received;
    PCCL_TRY(received.is_ok() ? look_idle(reader) : cause_of(received.status()));
    return std::size_t{0};
}

Status TcpRecvLink::look_idle(const StripedReader& reader) {
    const Status gone = watch_.look_idle();
    const Status doubt = reader.blocks().doubt();
    return settled(gone.is_ok() && !doubt.is_ok() ? cause_of(doubt) : gone);
}

Status TcpRecvLink::settled(const Status& gone) {
    const auto is_drained = [](const StripedReader& reader) {
        return reader.blocks().is_drained();
    };
    if (gone.is_ok() || watch_.is_silent() || std::ranges::all_of(readers_, is_drained))
        return gone;
    const TimePoint now = system_clock().now();
    if (gone_ == TimePoint{}) gone_ = now;
    return now - gone_ < kOnTheWay ? Status::ok() : gone;
}

Status TcpRecvLink::cause_of(const Status& fault) {
    // The error is sticky in the channel, not in the link: the other channel may still have bytes
    // that arrived.
    return watch_.explain(Status::peer_lost(peer_, concat(peer_name_, ": ", fault.message())));
}

void TcpRecvLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    watch_.close(reason);
    for (const StripedReader& reader : readers_) reader.blocks().stripes().end(reason);
}

}  // namespace pccl::transport::tcp
