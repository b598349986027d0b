// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/recv_link.h"

#include <algorithm>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {

TcpRecvLink::TcpRecvLink(LinkParts parts)
    : peer_(parts.peer), peer_name_(std::move(parts.peer_name)), watch_(std::move(parts.watch)) {
    for (Stripes& stripes : parts.channels) readers_.emplace_back(BlockReader(std::move(stripes)));
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
    const Status doubt = reader.source().doubt();
    return settled(gone.is_ok() && !doubt.is_ok() ? cause_of(doubt) : gone);
}

Status TcpRecvLink::settled(const Status& gone) {
    const auto is_drained = [](const StripedReader& reader) {
        return reader.source().is_drained();
    };
    return watch_.settled(gone, [&] { return std::ranges::all_of(readers_, is_drained); });
}

Status TcpRecvLink::cause_of(const Status& fault) {
    // The error is sticky in the channel, not in the link: the other channel may still have bytes
    // that arrived.
    return watch_.explain(Status::peer_lost(peer_, concat(peer_name_, ": ", fault.message())));
}

void TcpRecvLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    watch_.close(reason);
    for (const StripedReader& reader : readers_) reader.source().stripes().end(reason);
}

}  // namespace pccl::transport::tcp
