// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/recv_paths.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::tcp {

RecvPaths::RecvPaths(const CloseContext& close_context, std::string peer_name,
                     std::chrono::milliseconds peer_timeout)
    : peer_(close_context.leaver),
      peer_name_(std::move(peer_name)),
      peer_timeout_(peer_timeout),
      watch_(close_context) {
    for (int channel = 0; channel < kChannels; ++channel) readers_.emplace_back(PieceReader());
}

void RecvPaths::begin(std::vector<WatchedSocket> sockets) {
    const std::lock_guard lock(mutex_);
    use(0, sockets);
}

void RecvPaths::join(std::size_t path, std::vector<WatchedSocket> sockets) {
    const std::lock_guard lock(mutex_);
    joining_.push_back({.path = path, .sockets = std::move(sockets)});
    has_joining_.store(true, std::memory_order_release);
}

void RecvPaths::use(std::size_t path, std::vector<WatchedSocket>& sockets) {
    const std::size_t data_sockets = sockets.size() - 2;
    reader(kMessageChannel).source().use(path, std::move(sockets.front()));
    for (std::size_t i = 0; i < data_sockets; ++i)
        reader(kCollectiveChannel).source().use(path * data_sockets + i, std::move(sockets[1 + i]));
    watch_.use(path, std::move(sockets.back()));
}

void RecvPaths::admit() {
    if (!has_joining_.load(std::memory_order_acquire)) return;
    std::erase_if(joining_, [this](JoiningPath& joining) { return admit(joining); });
    has_joining_.store(!joining_.empty(), std::memory_order_release);
}

bool RecvPaths::admit(JoiningPath& joining) {
    const auto whole = std::as_writable_bytes(std::span(&joining.begin, 1));
    const auto got =
        sys::receive_some(joining.sockets.back().fd(), whole.subspan(joining.begin_bytes));
    if (!got.is_ok()) return true;
    joining.begin_bytes += *got;
    if (joining.begin_bytes < whole.size()) return false;
    if (joining.begin.magic == PathBegin::kMagic) use(joining.path, joining.sockets);
    return true;
}

Result<Bytes> RecvPaths::peek(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    const std::lock_guard lock(mutex_);
    admit();
    auto here = reader(channel).peek();
    if (here.is_ok() && !here->empty()) return here;
    PCCL_TRY(here.is_ok() ? settled(watch_.look_idle()) : cause_of(here.status()));
    return Bytes();
}

void RecvPaths::consume(ChannelId channel, std::size_t count) {
    const std::lock_guard lock(mutex_);
    reader(channel).consume(count);
}

Result<std::size_t> RecvPaths::receive(ChannelId channel, MutableBytes into) {
    if (status_.is_set()) return status_.get();
    const std::lock_guard lock(mutex_);
    admit();
    auto received = reader(channel).receive(into);
    if (received.is_ok() && (*received > 0 || into.empty())) return received;
    PCCL_TRY(received.is_ok() ? settled(watch_.look_idle()) : cause_of(received.status()));
    return std::size_t{0};
}

Status RecvPaths::look() {
    const std::lock_guard lock(mutex_);
    return settled(watch_.look());
}

Status RecvPaths::settled(const Status& gone) {
    const auto is_drained = [](const Reader& reader) { return reader.source().is_drained(); };
    return watch_.settled(gone, [&] { return std::ranges::all_of(readers_, is_drained); });
}

Status RecvPaths::cause_of(const Status& fault) {
    return watch_.explain(Status::peer_lost(peer_, concat(peer_name_, ": ", fault.message())));
}

void RecvPaths::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    const std::lock_guard lock(mutex_);
    watch_.close(reason);
    for (const Reader& reader : readers_) reader.source().end(reason, peer_timeout_);
}

}  // namespace pccl::transport::tcp
