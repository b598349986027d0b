#include "csrc/transport/shm/wire.h"

#include <array>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::shm {
namespace {

// The clock costs more than an empty look at a ring, and a socket much more.
constexpr int kFreeLooks = 64;
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);

}  // namespace

PeerWire::PeerWire(Rank peer, UniqueFd socket, std::unique_ptr<RemoteDoorbell> doorbell,
                   Waiter& waiter)
    : peer_(peer), socket_(std::move(socket)), doorbell_(std::move(doorbell)), waiter_(waiter) {
    // Not watched, a peer's byte could not end a sleep in epoll; the sleep's own bound would.
    static_cast<void>(waiter_.watch(socket_.get(), Watch::kAside));
}

PeerWire::~PeerWire() { waiter_.unwatch(socket_.get(), Watch::kAside); }

void PeerWire::ring() {
    if (!doorbell_->ring()) return;
    const std::array<std::byte, 1> nudge{};
    // A full socket wakes as well; a closed one is noticed by look_idle().
    static_cast<void>(sys::send_some(socket_.get(), nudge).is_ok());
}

Status PeerWire::look_idle() {
    if (++idle_ < kFreeLooks) return Status::ok();
    const TimePoint now = system_clock().now();
    if (now - looked_ < kBetweenLooks) return Status::ok();
    looked_ = now;
    return look();
}

Status PeerWire::look() {
    std::array<std::byte, 64> nudges;
    for (;;) {
        const auto got = sys::receive_some(socket_.get(), nudges);
        if (!got.is_ok())
            return Status::peer_lost(peer_, concat("rank ", peer_, " closed its connection"));
        if (*got < nudges.size()) return Status::ok();
    }
}

void PeerWire::close() { sys::shut_down(socket_.get()); }

}  // namespace pccl::transport::shm
