// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/completion_queue.h"

#include <endian.h>
#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

constexpr std::uint64_t kMostUnacknowledged = 64;

Status make_nonblocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0) return Status::ok();
    return Status::from_errno(errno, "cannot change the descriptor of completion events");
}

}  // namespace

CompletionInbox::CompletionInbox(std::size_t most) : ring_(std::bit_ceil(most)) {}

bool CompletionInbox::push(const WorkCompletion& completion) {
    const std::uint64_t written = written_.load(std::memory_order_relaxed);
    if (written - freed_.load(std::memory_order_acquire) == ring_.size()) return false;
    ring_[written & (ring_.size() - 1)] = completion;
    written_.store(written + 1, std::memory_order_release);
    return true;
}

bool CompletionInbox::pop(WorkCompletion& completion) {
    if (is_empty()) return false;
    completion = ring_[read_ & (ring_.size() - 1)];
    freed_.store(++read_, std::memory_order_release);
    return true;
}

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::create(const sys::verbs::Device& device,
                                                                 int entries, Waiter& waiter) {
    const sys::verbs::Libibverbs& library = device.verbs();
    std::unique_ptr<CompletionQueue> made(new CompletionQueue(device, waiter));
    const std::string of_device = concat(" of the RDMA device ", device.info().name);
    PCCL_ASSIGN_OR_RETURN(
        made->channel_,
        sys::verbs::own(library.create_comp_channel(device.context()), library.destroy_comp_channel,
                        "cannot create a completion channel" + of_device));
    PCCL_TRY(make_nonblocking(made->channel_->fd));
    made->free_ = std::min(entries, device.info().max_completions);
    PCCL_ASSIGN_OR_RETURN(
        made->queue_,
        sys::verbs::own(
            library.create_cq(device.context(), made->free_, nullptr, made->channel_.get(), 0),
            library.destroy_cq, "cannot create a completion queue" + of_device));
    PCCL_TRY(waiter.watch(made->channel_->fd));
    made->is_watched_ = true;
    waiter.add(*made);
    return made;
}

CompletionQueue::~CompletionQueue() {
    if (!is_watched_) return;
    waiter_.remove(*this);
    waiter_.unwatch(channel_->fd);
    if (events_ > 0) device_.verbs().ack_cq_events(queue_.get(), static_cast<unsigned>(events_));
}

bool CompletionQueue::reserve(int entries) {
    const std::lock_guard lock(mutex_);
    if (entries > free_) return false;
    free_ -= entries;
    return true;
}

void CompletionQueue::release(int entries) {
    const std::lock_guard lock(mutex_);
    free_ += entries;
}

void CompletionQueue::add(std::uint32_t number, CompletionInbox& inbox) {
    const std::lock_guard lock(mutex_);
    inboxes_[number] = &inbox;
}

void CompletionQueue::remove(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    inboxes_.erase(number);
}

Status CompletionQueue::poll() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() ? take_completions() : Status::ok();
}

Status CompletionQueue::take_completions() {
    int count = kAtOnce;
    while (count == kAtOnce && failure_.is_ok()) {
        count = ::ibv_poll_cq(queue_.get(), kAtOnce, taken_.data());
        for (int i = 0; i < count; ++i) deliver(taken_[static_cast<std::size_t>(i)]);
    }
    if (count < 0 && failure_.is_ok())
        failure_ = Status::peer_lost(kNoRank, concat("the completion queue of the RDMA device ",
                                                     device_.info().name, " has failed"));
    return failure_;
}

void CompletionQueue::deliver(const ibv_wc& completion) {
    // A queue pair that has been destroyed has no inbox any more.
    const auto found = inboxes_.find(completion.qp_num);
    if (found == inboxes_.end()) return;
    const bool has_room = found->second->push({.id = completion.wr_id,
                                               .status = completion.status,
                                               .vendor_error = completion.vendor_err,
                                               .immediate = be32toh(completion.imm_data),
                                               .bytes = completion.byte_len});
    if (!has_room)
        failure_ = Status::peer_lost(kNoRank, concat("the RDMA device ", device_.info().name,
                                                     " reports more completions than requests"));
}

/// Returns whether there were events.
bool CompletionQueue::drain_events() {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    const std::uint64_t before = events_;
    while (device_.verbs().get_cq_event(channel_.get(), &queue, &context) == 0) ++events_;
    const bool had_events = events_ > before;
    // Acknowledging takes a lock of the library.
    if (events_ >= kMostUnacknowledged)
        device_.verbs().ack_cq_events(queue_.get(),
                                      static_cast<unsigned>(std::exchange(events_, 0)));
    return had_events;
}

void CompletionQueue::before_sleep() {
    const std::lock_guard lock(mutex_);
    const bool had_events = drain_events();
    static_cast<void>(::ibv_req_notify_cq(queue_.get(), 0));
    // No event announces what completed before the request. The caller's poll() does not take it
    // where another thread polls at that moment.
    static_cast<void>(take_completions());
    // The events may be for another thread, which has not begun its sleep yet and then would find
    // the descriptor of the channel without events. It looks once more before it sleeps: wake it
    // once its completions are in its inbox, since it does not wait for this lock.
    if (had_events) waiter_.wake();
}

}  // namespace pccl::transport::verbs
