// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback/links.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/assert.h"
#include "csrc/base/ids.h"

namespace pccl::transport::loopback {

LoopbackSendLink::LoopbackSendLink(std::shared_ptr<Pipe> pipe, std::shared_ptr<Process> process)
    : pipe_(std::move(pipe)), process_(std::move(process)) {
    process_->hold(pipe_, Pipe::End::kSender);
}

Status LoopbackSendLink::check() {
    if (status_.is_set()) return status_.get();
    const Status alive = process_->live();
    return alive.is_ok() ? alive : status_.set(alive);
}

Result<std::size_t> LoopbackSendLink::send(ChannelId channel, Bytes bytes, Flush flush) {
    PCCL_TRY(check());
    auto taken = pipe_->send(channel, bytes, flush);
    if (!taken.is_ok()) return status_.set(taken.status());
    return taken;
}

Result<bool> LoopbackSendLink::flush(ChannelId channel) {
    PCCL_TRY(check());
    const Status flushed = pipe_->flush(channel);
    if (!flushed.is_ok()) return status_.set(flushed);
    return true;
}

void LoopbackSendLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    pipe_->leave(Pipe::End::kSender);
}

LoopbackRecvLink::LoopbackRecvLink(std::shared_ptr<Pipe> pipe, std::shared_ptr<Process> process)
    : pipe_(std::move(pipe)), process_(std::move(process)) {
    process_->hold(pipe_, Pipe::End::kReceiver);
}

Status LoopbackRecvLink::check() {
    if (status_.is_set()) return status_.get();
    const Status alive = process_->live();
    return alive.is_ok() ? alive : status_.set(alive);
}

Result<Bytes> LoopbackRecvLink::peek(ChannelId channel) {
    PCCL_TRY(check());
    Arrived& here = arrived(channel);
    if (here.begin == here.bytes.size() || here.shown) {
        here.bytes.erase(here.bytes.begin(),
                         here.bytes.begin() + static_cast<std::ptrdiff_t>(here.begin));
        here.begin = 0;
        const auto taken = pipe_->take(channel, here.bytes);
        if (!taken.is_ok() && here.bytes.empty()) return taken.status();
    }
    here.shown = true;
    return Bytes(here.bytes).subspan(here.begin);
}

void LoopbackRecvLink::consume(ChannelId channel, std::size_t count) {
    Arrived& here = arrived(channel);
    PCCL_ASSERT(count <= here.bytes.size() - here.begin);
    here.begin += count;
    here.shown = false;
    pipe_->free(channel, count);
}

Result<std::size_t> LoopbackRecvLink::receive(ChannelId channel, MutableBytes into) {
    PCCL_ASSIGN_OR_RETURN(const Bytes here, peek(channel));
    const std::size_t count = std::min(here.size(), into.size());
    if (count == 0) return count;
    std::memcpy(into.data(), here.data(), count);
    consume(channel, count);
    return count;
}

void LoopbackRecvLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    pipe_->leave(Pipe::End::kReceiver);
}

}  // namespace pccl::transport::loopback
