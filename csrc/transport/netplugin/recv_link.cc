// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/recv_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::transport::netplugin {
namespace {

/// How long bytes of a peer that is gone may take to arrive, unless it has ended its streams.
constexpr Duration kOnTheWay = std::chrono::milliseconds(200);
/// Polls after an arrival during which more is expected.
constexpr int kBusyPolls = 64;

}  // namespace

RecvCore::RecvCore(LinkParts parts, std::vector<std::unique_ptr<RecvChannel>> channels)
    : LinkCore(std::move(parts)) {
    for (auto& channel : channels) streams_.push_back({.channel = std::move(channel)});
}

Result<Activity> RecvCore::advance() {
    const Activity activity = advance_all();
    idle_polls_ = activity == Activity::kMoved ? 0 : std::min(idle_polls_ + 1, kBusyPolls);
    return activity == Activity::kIdle && idle_polls_ < kBusyPolls ? Activity::kWaiting : activity;
}

Activity RecvCore::advance_all() {
    Activity activity = Activity::kIdle;
    for (Stream& stream : streams_) {
        if (!stream.fault.is_ok()) continue;
        const auto advanced = stream.channel->advance();
        // The program finds the fault, and looks why.
        if (!advanced.is_ok()) stream.fault = advanced.status();
        if (advanced.is_ok() && !*advanced) continue;
        activity = Activity::kMoved;
        ++arrivals_;
    }
    return activity;
}

Status RecvCore::refresh(ChannelId id) {
    const Lock lock = try_use();
    if (!lock.owns_lock()) return check_call();
    advance_all();
    Stream& stream = streams_[static_cast<std::size_t>(id)];
    if (!stream.channel->is_empty()) return Status::ok();
    if (stream.lost.is_ok()) stream.lost = find_loss(stream);
    return stream.lost;
}

Status RecvCore::find_loss(Stream& stream) {
    if (stream.fault.is_ok()) return settled(look_now_and_then(), stream.channel->has_ended());
    return parts_.watch.explain(
        Status::peer_lost(parts_.peer, concat(parts_.peer_name, ": ", stream.fault.message())));
}

void RecvCore::repost() {
    if (const Lock lock = try_use(); lock.owns_lock()) advance_all();
}

Status RecvCore::look_settled() {
    const Lock lock = try_use();
    if (!lock.owns_lock()) return check_call();
    for (Stream& stream : streams_)
        if (stream.channel->is_empty() && !stream.fault.is_ok()) PCCL_TRY(find_loss(stream));
    return settled(look(), has_ended());
}

bool RecvCore::has_ended() const {
    return std::ranges::all_of(streams_, [](const Stream& each) {
        return each.channel->has_ended() || !each.fault.is_ok();
    });
}

Status RecvCore::settled(const Status& gone, bool has_all) {
    if (gone.is_ok() || has_all || parts_.watch.is_silent()) return gone;
    const TimePoint now = system_clock().now();
    if (gone_ == TimePoint{} || arrivals_ != seen_arrivals_) gone_ = now;
    seen_arrivals_ = arrivals_;
    return now - gone_ < kOnTheWay ? Status::ok() : gone;
}

void RecvCore::finish() {
    const Lock lock = use_at_end();
    set_over();
}

NetRecvLink::NetRecvLink(std::shared_ptr<RecvCore> core, std::shared_ptr<Progress> progress)
    : core_(std::move(core)), progress_(std::move(progress)) {
    progress_->add(core_);
}

NetRecvLink::~NetRecvLink() {
    core_->finish();
    progress_->remove(*core_);
}

Result<Bytes> NetRecvLink::peek(ChannelId id) {
    if (core_->status().is_set()) return core_->status().get();
    RecvChannel& stream = core_->channel(id);
    if (stream.is_empty() || stream.is_shown()) PCCL_TRY(core_->refresh(id));
    return stream.peek();
}

void NetRecvLink::consume(ChannelId id, std::size_t count) {
    if (core_->channel(id).consume(count)) core_->repost();
}

Result<std::size_t> NetRecvLink::receive(ChannelId id, MutableBytes into) {
    std::size_t taken = 0;
    while (taken < into.size()) {
        const auto here = peek(id);
        if (!here.is_ok() && taken == 0) return here.status();
        if (!here.is_ok() || here->empty()) break;
        const std::size_t some = std::min(here->size(), into.size() - taken);
        std::memcpy(into.data() + taken, here->data(), some);
        consume(id, some);
        taken += some;
    }
    return taken;
}

}  // namespace pccl::transport::netplugin
