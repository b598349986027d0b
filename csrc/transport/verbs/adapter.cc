// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/adapter.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

// Entries of one completion queue: 64 bytes each, of some 80 links.
constexpr int kEntries = 16'384;
// Attempts to get a key that peers have not had before.
constexpr int kMostAttempts = 256;
constexpr std::size_t kBlockerBytes = 64;

unsigned flags_of(Access access) {
    switch (access) {
        case Access::kLocal:
            return IBV_ACCESS_LOCAL_WRITE;
        case Access::kPeerWrite:
            return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
        case Access::kPeer:
            return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    }
    return 0;
}

std::string lock_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
    return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : concat(limit.rlim_cur / 1024, " KiB");
}

bool is_fatal(ibv_event_type type) {
    return type == IBV_EVENT_DEVICE_FATAL || type == IBV_EVENT_CQ_ERR;
}

}  // namespace

Result<std::shared_ptr<Adapter>> Adapter::open(const std::string& name, Waiter& waiter) {
    PCCL_ASSIGN_OR_RETURN(auto device, sys::verbs::Device::open(name));
    const sys::verbs::Libibverbs& library = device->verbs();
    ibv_context* const context = device->context();
    std::shared_ptr<Adapter> adapter(new Adapter(std::move(device), waiter), LeaveToParent());
    PCCL_ASSIGN_OR_RETURN(adapter->domain_,
                          sys::verbs::own(library.alloc_pd(context), library.dealloc_pd,
                                          concat("cannot create a protection domain of ", name)));
    adapter->port_failures_.resize(kMostPorts + 1);
    adapter->changes_.resize(kMostPorts + 1);
    PCCL_TRY(waiter.watch(adapter->device_->event_fd()));
    adapter->is_watched_ = true;
    return adapter;
}

Adapter::~Adapter() {
    if (is_watched_) waiter_.unwatch(device_->event_fd());
}

Result<MemoryRegion> Adapter::add(std::span<std::byte> memory, Access access) {
    return with_new_key(access, [&] { return register_once(memory, access); });
}

Result<MemoryRegion> Adapter::add_dmabuf(std::span<std::byte> memory, int file,
                                         std::uint64_t offset, Access access) {
    return with_new_key(access, [&] { return register_dmabuf_once(memory, file, offset, access); });
}

Result<MemoryRegion> Adapter::with_new_key(
    Access access, const std::function<Result<MemoryRegion>()>& register_memory) {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
        PCCL_ASSIGN_OR_RETURN(MemoryRegion region, register_memory());
        if (access == Access::kLocal) return region;
        {
            const std::lock_guard lock(keys_mutex_);
            if (published_.insert(region->rkey).second) return region;
        }
        region = {};
        PCCL_TRY(block_key());
    }
    return Status::resource_exhausted(
        concat("the RDMA device ", name(),
               " has no key left that peers have not had before; restart the process"));
}

Status Adapter::block_key() {
    const std::lock_guard lock(keys_mutex_);
    if (blocker_.memory().empty()) {
        PCCL_ASSIGN_OR_RETURN(blocker_, Mapping::anonymous(kBlockerBytes));
    }
    PCCL_ASSIGN_OR_RETURN(MemoryRegion region, register_once(blocker_.memory(), Access::kLocal));
    if (published_.contains(region->rkey)) blocked_.push_back(std::move(region));
    return Status::ok();
}

Result<MemoryRegion> Adapter::register_once(std::span<std::byte> memory, Access access) const {
    const sys::verbs::Libibverbs& library = device_->verbs();
    ibv_mr* const region = library.reg_mr(domain_.get(), memory.data(), memory.size(),
                                          static_cast<int>(flags_of(access)));
    if (region == nullptr) return registration_error(errno, memory.size());
    return MemoryRegion(region, library.dereg_mr);
}

Result<MemoryRegion> Adapter::register_dmabuf_once(std::span<std::byte> memory, int file,
                                                   std::uint64_t offset, Access access) const {
    const sys::verbs::Libibverbs& library = device_->verbs();
    if (library.reg_dmabuf_mr == nullptr)
        return Status::unsupported(
            "libibverbs registers no dma-bufs; install rdma-core 34 or newer");
    ibv_mr* const region = library.reg_dmabuf_mr(domain_.get(), offset, memory.size(),
                                                 reinterpret_cast<std::uint64_t>(memory.data()),
                                                 file, static_cast<int>(flags_of(access)));
    if (region != nullptr) return MemoryRegion(region, library.dereg_mr);
    const int error = errno;
    if (error == EOPNOTSUPP || error == EPROTONOSUPPORT || error == ENOSYS)
        return Status::unsupported(
            concat("the driver of the RDMA device ", name(), " registers no dma-bufs"));
    return registration_error(error, memory.size());
}

Status Adapter::registration_error(int error, std::size_t bytes) const {
    const std::string what =
        concat("the RDMA device ", name(), " cannot register ", bytes, " bytes");
    if (error != ENOMEM && error != EAGAIN) return Status::from_errno(error, what);
    return Status::resource_exhausted(
        concat(what, ": the limit of locked memory is ", lock_limit(),
               "; raise it by `ulimit -l unlimited`, or by memlock in /etc/security/limits.conf"));
}

Result<CompletionQueue*> Adapter::queue_for(int requests) {
    const std::lock_guard lock(mutex_);
    for (const auto& queue : queues_)
        if (queue->reserve(requests)) return queue.get();
    PCCL_ASSIGN_OR_RETURN(auto queue,
                          CompletionQueue::create(*device_, std::max(kEntries, requests), waiter_));
    if (!queue->reserve(requests))
        return Status::resource_exhausted(concat("a completion queue of the RDMA device ", name(),
                                                 " has fewer than ", requests, " entries"));
    queues_.push_back(std::move(queue));
    return queues_.back().get();
}

Status Adapter::check() {
    const std::lock_guard lock(mutex_);
    for (const sys::verbs::AsyncEvent& event : device_->take_events()) note(event);
    if (failure_.empty()) return Status::ok();
    return Status::peer_lost(
        kNoRank,
        concat("the RDMA device ", name(), " of this host has failed (", failure_, "); see dmesg"));
}

Status Adapter::check_port(int port) {
    PCCL_TRY(check());
    const std::lock_guard lock(mutex_);
    const std::string& failure = port_failures_[static_cast<std::size_t>(port)];
    if (failure.empty()) return Status::ok();
    return Status::peer_lost(
        kNoRank, concat("port ", port, " of the RDMA device ", name(), " of this host is down (",
                        failure, "); look at its cable and its switch"));
}

std::uint64_t Adapter::changes_of(int port) {
    static_cast<void>(check());
    const std::lock_guard lock(mutex_);
    return changes_[static_cast<std::size_t>(port)];
}

void Adapter::note(const sys::verbs::AsyncEvent& event) {
    const auto port = static_cast<std::size_t>(event.port);
    ++changes_[port];
    if (is_fatal(event.type)) {
        failure_ = event.text;
    } else if (event.type == IBV_EVENT_PORT_ERR) {
        port_failures_[port] = event.text;
    } else if (event.type == IBV_EVENT_PORT_ACTIVE) {
        port_failures_[port].clear();
    } else {
        log(LogLevel::kDebug, "RDMA device ", name(), ": ", event.text);
        return;
    }
    log(LogLevel::kWarning, "RDMA device ", name(),
        event.port > 0 ? concat(", port ", event.port) : std::string(), ": ", event.text);
}

}  // namespace pccl::transport::verbs
