#include "csrc/transport/nvlink/registration_cache.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <span>

#include "csrc/base/log.h"
#include "csrc/base/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::nvlink {

/// Both processes are of one host and one build: a struct is a good enough format.
struct RegistrationCache::Message {
    enum class Kind : std::uint32_t { kMap = 1, kMapped = 2, kRefused = 3 };
    Kind kind = Kind::kMap;
    std::uint32_t reserved = 0;
    std::uint64_t base = 0;     // of the allocation, at its owner
    std::uint64_t id = 0;       // of the allocation, at its owner
    std::uint64_t address = 0;  // kMapped: the base at the sender
    std::uint64_t bytes = 0;    // kMap: of the allocation
    sys::cuda::IpcHandle handle{};
};

struct RegistrationCache::Inbox {
    std::array<std::byte, sizeof(Message)> bytes{};
    std::size_t filled = 0;
    bool is_open = true;
};

namespace {

constexpr Duration kPatienceForAnswers = std::chrono::seconds(5);

std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

}  // namespace

RegistrationCache::RegistrationCache(const Options& options)
    : options_(options),
      inboxes_(index(options.sockets.size())),
      send_mutexes_(index(options.sockets.size())) {
    inboxes_[index(options.sockets.rank())].is_open = false;
}

Result<std::unique_ptr<RegistrationCache>> RegistrationCache::create(const Options& options) {
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
    for (const auto& [base, bytes] : opened_)
        static_cast<void>(options_.driver.close_allocation(base));
}

Result<SharedAllocation> RegistrationCache::find(sys::cuda::DeviceAddress address,
                                                 std::size_t bytes, Deadline deadline) {
    Lock lock(mutex_);
    PCCL_TRY(lost_);
    PCCL_ASSIGN_OR_RETURN(Registration * found, known(address));
    if (found == nullptr) {
        PCCL_TRY(enter(address, deadline, lock));
        PCCL_ASSIGN_OR_RETURN(found, known(address));
        if (found == nullptr) return Status::invalid_argument("GPU memory that was just freed");
    }
    const auto is_settled = [&] { return found->missing == 0 || !lost_.is_ok(); };
    const auto longest = std::min<Duration>(deadline.remaining(), std::chrono::hours(24));
    if (!answered_.wait_for(lock, longest, is_settled))
        return Status::timeout("a peer has not mapped this rank's GPU memory in time");
    PCCL_TRY(lost_);
    PCCL_TRY(found->status);
    if (found->shared.holds(address, bytes)) return found->shared;
    return Status::invalid_argument(
        concat("a tensor of ", bytes, " bytes reaches beyond its allocation"));
}

Status RegistrationCache::announce(sys::cuda::DeviceAddress address, Deadline deadline) {
    Lock lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(const Registration* const found, known(address));
    return found == nullptr ? enter(address, deadline, lock) : Status::ok();
}

auto RegistrationCache::known(sys::cuda::DeviceAddress address) -> Result<Registration*> {
    auto after = registrations_.upper_bound(address);
    if (after == registrations_.begin()) return nullptr;
    Registration& registration = std::prev(after)->second;
    if (!registration.shared.holds(address, 1)) return nullptr;
    // Another id: that memory was freed, and its address given out again.
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t id, options_.driver.allocation_id_of(address));
    return id == registration.shared.allocation.id ? &registration : nullptr;
}

Status RegistrationCache::enter(sys::cuda::DeviceAddress address, Deadline deadline, Lock& lock) {
    PCCL_ASSIGN_OR_RETURN(const auto allocation, options_.driver.allocation_of(address));
    Registration registration{.shared = {.allocation = allocation},
                              .missing = options_.sockets.size() - 1};
    registration.shared.bases[index(options_.sockets.rank())] = allocation.base;
    forget_overlapping(allocation);
    registrations_[allocation.base] = registration;
    lock.unlock();
    const Status asked = ask_peers(allocation, deadline);
    lock.lock();
    const auto entered = registrations_.find(allocation.base);
    if (asked.is_ok() || entered == registrations_.end()) return Status::ok();
    entered->second.missing = 0;
    entered->second.status = asked;
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

Status RegistrationCache::ask_peers(const sys::cuda::Allocation& allocation, Deadline deadline) {
    Message request{.kind = Message::Kind::kMap,
                    .base = allocation.base,
                    .id = allocation.id,
                    .bytes = allocation.bytes};
    PCCL_ASSIGN_OR_RETURN(request.handle, options_.driver.export_allocation(allocation.base));
    for (Rank peer = 0; peer < options_.sockets.size(); ++peer)
        if (peer != options_.sockets.rank()) PCCL_TRY(send(peer, request, deadline));
    return Status::ok();
}

Status RegistrationCache::send(Rank peer, const Message& message, Deadline deadline) {
    const std::lock_guard lock(send_mutexes_[index(peer)]);
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
    Inbox& inbox = inboxes_[index(peer)];
    for (;;) {
        const auto count = sys::receive_some(options_.sockets.of(peer),
                                             std::span(inbox.bytes).subspan(inbox.filled));
        if (!count.is_ok()) return lose(peer, count.status());
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
        case Message::Kind::kMap:
            return map_for(peer, message);
        case Message::Kind::kMapped:
        case Message::Kind::kRefused:
            return note_answer(peer, message);
    }
    lose(peer, Status::peer_lost(peer, "it speaks nonsense"));
}

void RegistrationCache::map_for(Rank peer, const Message& request) {
    const auto base = options_.driver.open_allocation(request.handle);
    Message answer{.kind = Message::Kind::kMapped, .base = request.base, .id = request.id};
    if (base.is_ok()) {
        answer.address = *base;
        const std::lock_guard lock(mutex_);
        opened_.emplace(*base, request.bytes);
    } else {
        answer.kind = Message::Kind::kRefused;
        log(LogLevel::kWarning, "cannot map GPU memory of rank ", peer, ": ",
            base.status().message());
    }
    const Status sent = send(peer, answer, Deadline::after(kPatienceForAnswers));
    if (!sent.is_ok()) lose(peer, sent);
}

void RegistrationCache::note_answer(Rank peer, const Message& answer) {
    const std::lock_guard lock(mutex_);
    const auto found = registrations_.find(answer.base);
    if (found == registrations_.end() || found->second.shared.allocation.id != answer.id) return;
    Registration& registration = found->second;
    registration.shared.bases[index(peer)] = answer.address;
    if (answer.kind == Message::Kind::kRefused)
        registration.status =
            Status::unsupported(concat("rank ", peer, " cannot map this rank's GPU memory"));
    --registration.missing;
    answered_.notify_all();
}

void RegistrationCache::lose(Rank peer, const Status& why) {
    inboxes_[index(peer)].is_open = false;
    bool is_first = false;
    {
        const std::lock_guard lock(mutex_);
        is_first = lost_.is_ok();
        if (is_first)
            lost_ = Status::peer_lost(peer, concat("rank ", peer, " is gone: ", why.message()));
        answered_.notify_all();
    }
    if (is_first && options_.on_lost) options_.on_lost();
}

Status RegistrationCache::health() const {
    const std::lock_guard lock(mutex_);
    return lost_;
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
