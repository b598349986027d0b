// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/registration_cache.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <span>

#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::nvlink {

/// Wire format. Both processes run on one host and with one build, so a struct suffices.
struct RegistrationCache::Message {
    enum class MessageType : std::uint32_t {
        kMap = 1,
        kMapped = 2,
        kRefused = 3,
        kCloseReason = 4
    };
    MessageType kind = MessageType::kMap;
    std::uint32_t reserved = 0;
    std::uint64_t base = 0;     // of the allocation, at its owner
    std::uint64_t id = 0;       // of the allocation, at its owner
    std::uint64_t address = 0;  // kMapped: the base at the sender
    std::uint64_t bytes = 0;    // kMap: of the allocation
    sys::cuda::IpcHandle handle{};

    // kCloseReason: the reason why the sender ends the group.
    StatusCode code = StatusCode::kOk;
    Rank blamed = kNoRank;
    std::array<char, 504> why{};  // ends with a 0
};

struct RegistrationCache::Inbox {
    std::array<std::byte, sizeof(Message)> bytes{};
    std::size_t filled = 0;
    bool is_open = true;
};

namespace {

constexpr Duration kAnswerTimeout = std::chrono::seconds(5);
constexpr Duration kCloseReasonTimeout = std::chrono::milliseconds(100);

Status gone(Rank peer, const Status& why) {
    return Status::peer_lost(peer, concat("rank ", peer, " is gone: ", why.message()));
}

}  // namespace

RegistrationCache::RegistrationCache(const RegistrationCacheOptions& options)
    : options_(options),
      inboxes_(at(options.sockets.size())),
      send_mutexes_(at(options.sockets.size())) {
    inboxes_[at(options.sockets.rank())].is_open = false;
}

Result<std::unique_ptr<RegistrationCache>> RegistrationCache::create(
    const RegistrationCacheOptions& options) {
    std::unique_ptr<RegistrationCache> cache(new RegistrationCache(options));
    PCCL_TRY(cache->start());
    return cache;
}

Status RegistrationCache::start() {
    stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_.is_open()) return Status::from_errno(errno, "cannot create an eventfd");
    server_ = std::make_unique<BackgroundThread>("pccl-gpu-map", [this] { serve(); });
    return Status::ok();
}

RegistrationCache::~RegistrationCache() {
    stopping_.store(true);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    server_.reset();
    if (keeps_mappings_) return;
    for (const auto& [base, bytes] : opened_)
        static_cast<void>(options_.driver.close_allocation(base));
}

Result<SharedAllocation> RegistrationCache::find(sys::cuda::DeviceAddress address,
                                                 std::size_t bytes, Deadline deadline) {
    Lock lock(mutex_);
    PCCL_TRY(over_);
    PCCL_ASSIGN_OR_RETURN(PendingRegistration * found, known(address));
    if (found == nullptr) {
        PCCL_TRY(add(address, deadline, lock));
        PCCL_ASSIGN_OR_RETURN(found, known(address));
        if (found == nullptr) return Status::invalid_argument("GPU memory that was just freed");
    }
    const auto is_settled = [&] { return found->missing == 0 || !over_.is_ok(); };
    const auto longest = std::min<Duration>(deadline.remaining(), std::chrono::hours(24));
    if (!answered_.wait_for(lock, longest, is_settled)) return late(*found);
    PCCL_TRY(over_);
    PCCL_TRY(found->status);
    if (found->shared.holds(address, bytes)) return found->shared;
    return Status::invalid_argument(
        concat("a tensor of ", bytes, " bytes reaches beyond its allocation"));
}

/// Returns a timeout that names the first rank without an answer.
Status RegistrationCache::late(const PendingRegistration& registration) const {
    Rank peer = 0;
    while (registration.shared.bases[at(peer)] != 0 && peer + 1 < options_.sockets.size()) ++peer;
    return Status::timeout(concat("rank ", peer, " has not mapped this rank's GPU memory in time"),
                           peer);
}

Status RegistrationCache::announce(sys::cuda::DeviceAddress address, Deadline deadline) {
    Lock lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(const PendingRegistration* const found, known(address));
    return found == nullptr ? add(address, deadline, lock) : Status::ok();
}

Result<RegistrationCache::PendingRegistration*> RegistrationCache::known(
    sys::cuda::DeviceAddress address) {
    auto after = registrations_.upper_bound(address);
    if (after == registrations_.begin()) return nullptr;
    PendingRegistration& registration = std::prev(after)->second;
    if (!registration.shared.holds(address, 1)) return nullptr;
    // Another id: that memory was freed, and its address reused.
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t id, options_.driver.allocation_id_of(address));
    return id == registration.shared.allocation.id ? &registration : nullptr;
}

Status RegistrationCache::add(sys::cuda::DeviceAddress address, Deadline deadline, Lock& lock) {
    PCCL_ASSIGN_OR_RETURN(const auto allocation, options_.driver.allocation_of(address));
    PendingRegistration registration{.shared = {.allocation = allocation},
                                     .missing = options_.sockets.size() - 1};
    registration.shared.bases[at(options_.sockets.rank())] = allocation.base;
    forget_overlapping(allocation);
    registrations_[allocation.base] = registration;
    lock.unlock();
    const Status queried = query_peers(allocation, deadline);
    lock.lock();
    const auto entered = registrations_.find(allocation.base);
    if (queried.is_ok() || entered == registrations_.end()) return Status::ok();
    entered->second.missing = 0;
    entered->second.status = queried;
    answered_.notify_all();
    return Status::ok();
}

void RegistrationCache::forget_overlapping(const sys::cuda::Allocation& allocation) {
    const auto end = registrations_.lower_bound(allocation.base + allocation.bytes);
    auto begin = registrations_.lower_bound(allocation.base);
    if (begin != registrations_.begin() &&
        std::prev(begin)->second.shared.holds(allocation.base, 1))
        --begin;
    registrations_.erase(begin, end);
}

Status RegistrationCache::query_peers(const sys::cuda::Allocation& allocation, Deadline deadline) {
    Message request{.kind = Message::MessageType::kMap,
                    .base = allocation.base,
                    .id = allocation.id,
                    .bytes = allocation.bytes};
    PCCL_ASSIGN_OR_RETURN(request.handle, options_.driver.export_allocation(allocation.base));
    for (Rank peer = 0; peer < options_.sockets.size(); ++peer)
        if (peer != options_.sockets.rank()) PCCL_TRY(send(peer, request, deadline));
    return Status::ok();
}

Status RegistrationCache::send(Rank peer, const Message& message, Deadline deadline) {
    const std::lock_guard lock(send_mutexes_[at(peer)]);
    const Status sent =
        sys::send_all(options_.sockets.of(peer), std::as_bytes(std::span(&message, 1)), deadline);
    if (sent.is_ok()) return Status::ok();
    return {sent.code(), concat("rank ", peer, " maps no GPU memory: ", sent.message()), peer};
}

void RegistrationCache::serve() {
    if (const Status used = options_.driver.use(options_.device); !used.is_ok())
        log(LogLevel::kError, "cannot map peers' GPU memory: ", used.message());
    std::vector<sys::Interest> interests(inboxes_.size() + 1);
    interests.back() = {.fd = stop_.get(), .input = true};
    while (!stopping_.load()) {
        for (std::size_t peer = 0; peer < inboxes_.size(); ++peer)
            interests[peer] = {
                .fd = inboxes_[peer].is_open ? options_.sockets.of(static_cast<Rank>(peer)) : -1,
                .input = true};
        sys::wait_for_any(interests, Duration::max());
        for (std::size_t peer = 0; peer < inboxes_.size(); ++peer)
            if (inboxes_[peer].is_open) read(static_cast<Rank>(peer));
    }
}

void RegistrationCache::read(Rank peer) {
    Inbox& inbox = inboxes_[at(peer)];
    for (;;) {
        const auto count = sys::receive_some(options_.sockets.of(peer),
                                             std::span(inbox.bytes).subspan(inbox.filled));
        if (!count.is_ok()) return lose(peer, gone(peer, count.status()));
        if (*count == 0) return;
        inbox.filled += *count;
        if (inbox.filled < inbox.bytes.size()) continue;
        inbox.filled = 0;
        Message message;
        std::memcpy(&message, inbox.bytes.data(), sizeof message);
        handle(peer, message);
    }
}

void RegistrationCache::handle(Rank peer, const Message& message) {
    switch (message.kind) {
        case Message::MessageType::kMap:
            return map_for(peer, message);
        case Message::MessageType::kMapped:
        case Message::MessageType::kRefused:
            return note_answer(peer, message);
        case Message::MessageType::kCloseReason:
            return lose(peer, reason_of(peer, message));
    }
    lose(peer, gone(peer, Status::internal("it broke the protocol")));
}

void RegistrationCache::map_for(Rank peer, const Message& request) {
    const auto base = options_.driver.open_allocation(request.handle);
    Message answer{.kind = Message::MessageType::kMapped, .base = request.base, .id = request.id};
    if (base.is_ok()) {
        answer.address = *base;
        const std::lock_guard lock(mutex_);
        opened_.emplace(*base, request.bytes);
    } else {
        answer.kind = Message::MessageType::kRefused;
        log(LogLevel::kWarning, "cannot map GPU memory of rank ", peer, ": ",
            base.status().message());
    }
    const Status sent = send(peer, answer, Deadline::after(kAnswerTimeout));
    if (!sent.is_ok()) lose(peer, gone(peer, sent));
}

void RegistrationCache::note_answer(Rank peer, const Message& answer) {
    const std::lock_guard lock(mutex_);
    const auto found = registrations_.find(answer.base);
    if (found == registrations_.end() || found->second.shared.allocation.id != answer.id) return;
    PendingRegistration& registration = found->second;
    registration.shared.bases[at(peer)] = answer.address;
    if (answer.kind == Message::MessageType::kRefused)
        registration.status =
            Status::unsupported(concat("rank ", peer, " cannot map this rank's GPU memory"));
    --registration.missing;
    answered_.notify_all();
}

/// Returns why the group has ended, from a close reason of `peer`.
Status RegistrationCache::reason_of(Rank peer, const Message& close_reason) const {
    const std::string why(close_reason.why.data(),
                          ::strnlen(close_reason.why.data(), close_reason.why.size()));
    return as_reported_by(peer, {close_reason.code, why, close_reason.blamed});
}

Status RegistrationCache::as_reported_by(Rank peer, const Status& why) const {
    std::string what = concat("rank ", peer, " has left the group: ", why.message());
    const bool is_about_another = why.peer() >= 0 && why.peer() < options_.sockets.size() &&
                                  why.peer() != options_.sockets.rank();
    const Rank blamed = is_about_another ? why.peer() : peer;
    if (why.code() == StatusCode::kMismatch) return Status::mismatch(blamed, std::move(what));
    if (why.code() == StatusCode::kTimeout && is_about_another)
        return Status::timeout(std::move(what), blamed);
    return Status::peer_lost(blamed, std::move(what));
}

void RegistrationCache::lose(Rank peer, const Status& why) {
    inboxes_[at(peer)].is_open = false;
    if (end(why) && options_.on_lost) options_.on_lost();
}

bool RegistrationCache::end(const Status& why) {
    const std::lock_guard lock(mutex_);
    if (!over_.is_ok()) return false;
    over_ = why;
    answered_.notify_all();
    return true;
}

void RegistrationCache::leave(const Status& why) {
    if (!end(why)) return;
    Message close_reason{
        .kind = Message::MessageType::kCloseReason, .code = why.code(), .blamed = why.peer()};
    why.message().copy(close_reason.why.data(), close_reason.why.size() - 1);
    for (Rank peer = 0; peer < options_.sockets.size(); ++peer)
        if (peer != options_.sockets.rank())
            static_cast<void>(send(peer, close_reason, Deadline::after(kCloseReasonTimeout)));
}

Status RegistrationCache::health() const {
    const std::lock_guard lock(mutex_);
    return over_;
}

bool RegistrationCache::has_mapped(sys::cuda::DeviceAddress address, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto after = opened_.upper_bound(address);
    if (after == opened_.begin()) return false;
    const auto& [base, length] = *std::prev(after);
    return bytes <= length && address - base <= length - bytes;
}

std::size_t RegistrationCache::size() const {
    const std::lock_guard lock(mutex_);
    return registrations_.size();
}

}  // namespace pccl::transport::nvlink
