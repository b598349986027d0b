#include "csrc/transport/tcp/send_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {
namespace {

constexpr std::size_t kMostHeld = 1 * kKiB;

iovec piece_of(Bytes bytes, std::size_t most) {
    return {const_cast<std::byte*>(bytes.data()), std::min(bytes.size(), most)};
}

/// Any run of `capacity` bytes puts at most this much on one of n sockets: capacity / n + block.
std::size_t striped_capacity(const Stripes& stripes) {
    std::size_t smallest = static_cast<std::size_t>(-1);
    for (const WatchedSocket& socket : stripes.sockets())
        smallest = std::min(smallest, sys::granted_send_buffer(socket.fd()));
    const std::size_t block = std::min(stripes.block_bytes(), smallest);
    return std::max(smallest, stripes.sockets().size() * (smallest - block));
}

}  // namespace

TcpSendLink::TcpSendLink(LinkParts parts)
    : peer_(parts.peer), peer_name_(std::move(parts.peer_name)), watch_(std::move(parts.watch)) {
    for (Stripes& stripes : parts.channels) {
        outlets_.push_back({std::move(stripes), {}});
        outlets_.back().held.reserve(kMostHeld);
    }
}

std::size_t TcpSendLink::capacity(ChannelId channel) const {
    return striped_capacity(outlets_[static_cast<std::size_t>(channel)].stripes);
}

Result<std::size_t> TcpSendLink::send(ChannelId channel, Bytes bytes, Flush flush) {
    if (status_.is_set()) return status_.get();
    Outlet& outlet = outlets_[static_cast<std::size_t>(channel)];
    if (flush == Flush::kLater && outlet.held.size() + bytes.size() <= kMostHeld) {
        outlet.held.insert(outlet.held.end(), bytes.begin(), bytes.end());
        return bytes.size();
    }
    return push(outlet, bytes);
}

Result<bool> TcpSendLink::flush(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    Outlet& outlet = outlets_[static_cast<std::size_t>(channel)];
    if (outlet.held.empty()) return true;
    PCCL_TRY(push(outlet, {}).status());
    return outlet.held.empty();
}

Result<std::size_t> TcpSendLink::push(Outlet& outlet, Bytes bytes) {
    std::size_t held_sent = 0;
    std::size_t sent = 0;
    while (held_sent < outlet.held.size() || sent < bytes.size()) {
        const std::size_t room = outlet.stripes.left();
        const iovec held = piece_of(Bytes(outlet.held).subspan(held_sent), room);
        const iovec fresh = piece_of(bytes.subspan(sent), room - held.iov_len);
        const std::array<iovec, 2> both{held, fresh};
        const std::span<const iovec> pieces(both);
        const int fd = outlet.stripes.current();
        const auto taken = sys::send_some(fd, held.iov_len > 0 ? pieces : pieces.subspan(1));
        // What was taken before the fault counts; the next call finds the fault again.
        if (!taken.is_ok() && sent == 0) PCCL_TRY(fail(taken.status()));
        if (!taken.is_ok()) break;
        const std::size_t of_held = std::min(taken.value(), held.iov_len);
        held_sent += of_held;
        sent += taken.value() - of_held;
        outlet.stripes.advance(taken.value());
        // A peer that left without reading leaves a window that stays shut: the kernel waits on.
        if (taken.value() == 0 && sent == 0) PCCL_TRY(fail_if_left());
        if (taken.value() < held.iov_len + fresh.iov_len) break;
    }
    outlet.held.erase(outlet.held.begin(),
                      outlet.held.begin() + static_cast<std::ptrdiff_t>(held_sent));
    return sent;
}

Status TcpSendLink::fail_if_left() {
    const Status left = watch_.look_idle();
    return left.is_ok() ? left : status_.set(left);
}

Status TcpSendLink::fail(const Status& fault) {
    const Status why =
        watch_.explain(Status::peer_lost(peer_, concat(peer_name_, ": ", fault.message())));
    return why.is_ok() ? why : status_.set(why);
}

void TcpSendLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    watch_.close(reason);
    for (const Outlet& outlet : outlets_) outlet.stripes.end(reason);
}

}  // namespace pccl::transport::tcp
