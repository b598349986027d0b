// SPDX-License-Identifier: Apache-2.0

// Communicators that are being connected. The polling thread makes the calls: a plug-in that blocks
// in one holds up neither the program nor its other connections.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"
#include "csrc/transport/netplugin/comm.h"
#include "csrc/transport/netplugin/progress.h"
#include "csrc/transport/netplugin/wire.h"

namespace pccl::transport::netplugin {

/// Memory of one communicator.
struct CommSizes {
    std::size_t message_bytes = 0;
    std::size_t memory_bytes = 0;
};

/// Where communicators are connected.
struct SetupPlace {
    Caller caller;
    int device = 0;  // its number
    int peers = 1;   // with which the process may have links at a time
};

class Setup : public Polled {
   public:
    /// `ring` is called, on the polling thread, when there is news.
    Setup(SetupPlace place, std::function<void()> ring)
        : place_(std::move(place)), ring_(std::move(ring)) {}

    /// Returns whether all communicators are there, once; the error where that failed, or where a
    /// call of the plug-in does not return.
    Result<bool> is_done();
    /// Returns the communicators, with memory, of a setup that is done.
    std::vector<Comm> take();
    [[nodiscard]] const Caller& caller() const { return place_.caller; }

    /// Ends the attempt of its owner. Polls go on until the plug-in has a communicator, which is
    /// closed, or fails: the ABI has no call that ends an attempt and frees what it holds.
    void abandon() { abandoned_until_ = system_clock().now() + kLongestAbandoned; }

    Activity poll() final;
    [[nodiscard]] bool is_over() final;
    [[nodiscard]] bool is_awaited() const final {
        return abandoned_until_.load() != TimePoint::max();
    }

   protected:
    /// Makes the next calls.
    virtual Status step() = 0;
    Status add(Comm comm, std::size_t memory_bytes);
    [[nodiscard]] int device() const { return place_.device; }
    [[nodiscard]] std::size_t connected() const { return comms_.size(); }
    void ring() const { ring_(); }
    std::mutex mutex_;  // guards what step() changes; never held during a call of the plug-in

   private:
    static constexpr Duration kLongestAbandoned = std::chrono::seconds(60);

    Status expect_and_step();

    const SetupPlace place_;
    const std::function<void()> ring_;
    std::atomic<TimePoint> abandoned_until_{TimePoint::max()};
    std::vector<Comm> comms_;  // by channel
    std::optional<Status> result_;
};

/// Setup of a sender.
class ConnectSetup final : public Setup {
   public:
    ConnectSetup(SetupPlace place, std::function<void()> ring, const LinkOffer& offer,
                 std::size_t memory_bytes)
        : Setup(std::move(place), std::move(ring)),
          handles_(offer.handles),
          memory_bytes_(memory_bytes) {}

   protected:
    Status step() override;

   private:
    std::array<sys::net_plugin::Handle, kChannels> handles_;  // plug-ins keep their state here
    const std::size_t memory_bytes_;
};

/// Setup of a receiver.
class AcceptSetup final : public Setup {
   public:
    AcceptSetup(SetupPlace place, std::function<void()> ring, const CommSizes& sizes, int rail)
        : Setup(std::move(place), std::move(ring)), sizes_(sizes) {
        offer_.message_bytes = static_cast<std::uint32_t>(sizes.message_bytes);
        offer_.rail = rail;
    }
    /// Returns the offer once the plug-in listens, each time.
    [[nodiscard]] std::optional<LinkOffer> offer();

   protected:
    Status step() override;

   private:
    const CommSizes sizes_;
    std::vector<Comm> listeners_;  // by channel
    LinkOffer offer_;
    bool is_listening_ = false;
};

}  // namespace pccl::transport::netplugin
