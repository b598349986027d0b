#include "csrc/transport/tcp/send_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {
namespace {

// To copy so few bytes costs less than a system call for them.
constexpr std::size_t kShort = 8 * kKiB;
constexpr std::size_t kMostHeld = 64 * kKiB;

/// What one call sends: bytes that were held back, and then pieces, as one run.
class Run {
   public:
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): to clear vectors_ takes time
    Run(Bytes held, std::span<const Bytes> pieces) : held_(held), pieces_(pieces) {
        for (const Bytes& piece : pieces) total_ += piece.size();
    }

    /// Bytes [begin, begin + room) of it, or the first of these, as the system takes them.
    [[nodiscard]] std::span<const iovec> part(std::size_t begin, std::size_t room) {
        std::size_t count = 0;
        const auto add = [&](Bytes piece) {
            const std::size_t skipped = std::min(begin, piece.size());
            begin -= skipped;
            const std::size_t taken = std::min(room, piece.size() - skipped);
            room -= taken;
            if (taken > 0)
                vectors_[count++] = {const_cast<std::byte*>(piece.data()) + skipped, taken};
        };
        add(held_);
        for (const Bytes& piece : pieces_) {
            if (count == vectors_.size() || room == 0) break;
            add(piece);
        }
        return std::span(vectors_).first(count);
    }
    [[nodiscard]] std::size_t bytes() const { return held_.size() + total_; }

   private:
    Bytes held_;
    std::span<const Bytes> pieces_;
    std::size_t total_ = 0;
    std::array<iovec, 65> vectors_;  // as many as part() gives are set
};

std::size_t bytes_of(std::span<const iovec> vectors) {
    std::size_t bytes = 0;
    for (const iovec& vector : vectors) bytes += vector.iov_len;
    return bytes;
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
        outlets_.back().held.reserve(kShort);
    }
}

std::size_t TcpSendLink::capacity(ChannelId channel) const {
    return striped_capacity(outlets_[static_cast<std::size_t>(channel)].stripes);
}

Result<std::size_t> TcpSendLink::send(ChannelId channel, Bytes bytes, Flush flush) {
    if (status_.is_set()) return status_.get();
    Outlet& outlet = outlets_[static_cast<std::size_t>(channel)];
    if (flush == Flush::kLater && bytes.size() <= kShort &&
        outlet.held.size() + bytes.size() <= kMostHeld) {
        outlet.held.insert(outlet.held.end(), bytes.begin(), bytes.end());
        return bytes.size();
    }
    return push(outlet, {&bytes, 1});
}

Result<std::size_t> TcpSendLink::send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                               Flush flush) {
    if (flush == Flush::kLater) return SendLink::send_gathered(channel, pieces, flush);
    if (status_.is_set()) return status_.get();
    return push(outlets_[static_cast<std::size_t>(channel)], pieces);
}

Result<bool> TcpSendLink::flush(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    Outlet& outlet = outlets_[static_cast<std::size_t>(channel)];
    if (outlet.held.empty()) return true;
    PCCL_TRY(push(outlet, {}).status());
    return outlet.held.empty();
}

Result<std::size_t> TcpSendLink::push(Outlet& outlet, std::span<const Bytes> pieces) {
    const std::size_t held = outlet.held.size();
    Run run(outlet.held, pieces);
    std::size_t sent = 0;
    while (sent < run.bytes()) {
        const std::span<const iovec> part = run.part(sent, outlet.stripes.left());
        const auto taken = sys::send_some(outlet.stripes.current(), part);
        // What was taken before the fault counts; the next call finds the fault again.
        if (!taken.is_ok() && sent <= held) PCCL_TRY(fail(taken.status()));
        if (!taken.is_ok()) break;
        sent += *taken;
        outlet.stripes.advance(*taken);
        // A peer that left without reading leaves a window that stays shut: the kernel waits on.
        if (*taken == 0 && sent <= held) PCCL_TRY(fail_if_left());
        if (*taken < bytes_of(part)) break;
    }
    const std::size_t of_held = std::min(sent, held);
    outlet.held.erase(outlet.held.begin(),
                      outlet.held.begin() + static_cast<std::ptrdiff_t>(of_held));
    return sent - of_held;
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
