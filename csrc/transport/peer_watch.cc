// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/peer_watch.h"

namespace pccl::transport {
namespace {

// A check is a system call, and reading the clock costs more than counting: most calls do neither.
constexpr int kFreeLooks = 64;
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);
constexpr Duration kBrokenGrace = std::chrono::milliseconds(200);
constexpr Duration kEarlierOnTheWay = std::chrono::milliseconds(200);

}  // namespace

void PeerWatch::use(std::size_t path, WatchedSocket socket) {
    while (paths_.size() <= path)
        paths_.push_back({.close_reason = CloseReasonReceiver(close_context_)});
    paths_[path].close_reason = CloseReasonReceiver(close_context_);
    paths_[path].socket.emplace(std::move(socket));
}

Status PeerWatch::look() {
    Status silence;
    bool is_any_well = false;
    for (WatchedPath& path : paths_) {
        if (!path.socket) continue;
        const Status gone = path.close_reason.receive(path.socket->fd());
        if (gone.is_ok())
            is_any_well = true;
        else if (path.close_reason.is_silent())
            silence = gone;
        else
            return gone;
    }
    is_silent_ = !is_any_well && !silence.is_ok();
    return is_silent_ ? silence : Status::ok();
}

void PeerWatch::close(const Status& reason) {
    for (const WatchedPath& path : paths_)
        if (path.socket) send_close_reason(path.socket->fd(), reason);
}

Status PeerWatch::look_idle() {
    if (++idle_ < kFreeLooks) return Status::ok();
    const TimePoint now = system_clock().now();
    if (now - looked_ < kBetweenLooks) return Status::ok();
    looked_ = now;
    return look();
}

Status PeerWatch::settled(const Status& gone, const std::function<bool()>& is_drained) {
    if (gone.is_ok() || is_silent_ || is_drained()) return gone;
    const TimePoint now = system_clock().now();
    if (gone_ == TimePoint{}) gone_ = now;
    return now - gone_ < kEarlierOnTheWay ? Status::ok() : gone;
}

Status PeerWatch::explain(const Status& fault) {
    PCCL_TRY(look());
    const TimePoint now = system_clock().now();
    if (broken_ == TimePoint{}) broken_ = now;
    return now - broken_ < kBrokenGrace ? Status::ok() : fault;
}

}  // namespace pccl::transport
