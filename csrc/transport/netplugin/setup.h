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
    std::vector<const sys::net_plugin::DeviceProperties*> devices;  // by lane
    int peers = 1;  // with which the process may have links at a time
};

class Setup : public Polled {
   public:
    /// `ring` is called, on the polling thread, when there is news.
    Setup(SetupPlace place, std::function<void()> ring)
        : place_(std::move(place)), ring_(std::move(ring)) {}

    /// Returns whether all communicators are there, once; the error where that failed, or where a
    /// call of the plug-in does not return.
    Result<bool> is_done();
    /// Returns the communicators, with memory, of a setup that is done: those of channel 0 by lane,
    /// then those of channel 1, and so on.
    std::vector<Comm> take();
    [[nodiscard]] std::size_t lanes() const { return place_.devices.size(); }
    [[nodiscard]] const Caller& caller() const { return place_.caller; }

    /// Ends the attempt of its owner. Polls go on until the plug-in has a communicator, which is
    /// closed, or fails: the ABI has no call that ends an attempt and frees its sockets.
    void abandon() { abandoned_until_ = system_clock().now() + kLongestAbandoned; }

    Activity poll() final;
    [[nodiscard]] bool is_over() final;
    [[nodiscard]] bool is_awaited() const final {
        return abandoned_until_.load() != TimePoint::max();
    }

   protected:
    /// Makes the next calls.
    virtual Status step() = 0;
    Status add(Comm comm, std::shared_ptr<Mapping> memory);
    /// Returns the number of the device of the next communicator, its channel and its lane.
    [[nodiscard]] int device(std::size_t index) const {
        return place_.devices[lane_of(index)]->number;
    }
    [[nodiscard]] const auto& devices() const { return place_.devices; }
    [[nodiscard]] std::size_t lane_of(std::size_t index) const { return index % lanes(); }
    [[nodiscard]] std::size_t channel_of(std::size_t index) const { return index / lanes(); }
    [[nodiscard]] std::size_t count() const { return kChannels * lanes(); }
    [[nodiscard]] const std::vector<Comm>& connected() const { return comms_; }
    void ring() const { ring_(); }
    std::mutex mutex_;  // guards what step() changes; never held during a call of the plug-in

   private:
    static constexpr Duration kLongestAbandoned = std::chrono::seconds(60);

    Status expect_and_step();

    const SetupPlace place_;
    const std::function<void()> ring_;
    std::atomic<TimePoint> abandoned_until_{TimePoint::max()};
    std::vector<Comm> comms_;  // by channel, and then by lane
    std::optional<Status> result_;
};

/// Setup of a sender.
class ConnectSetup final : public Setup {
   public:
    ConnectSetup(SetupPlace place, std::function<void()> ring, const LinkOffer& offer,
                 std::size_t memory_bytes)
        : Setup(std::move(place), std::move(ring)), offer_(offer), memory_bytes_(memory_bytes) {}

   protected:
    Status step() override;

   private:
    Result<std::shared_ptr<Mapping>> memory_for(std::size_t index) const;

    LinkOffer offer_;  // plug-ins keep their state in its handles
    const std::size_t memory_bytes_;
};

/// Setup of a receiver.
class AcceptSetup final : public Setup {
   public:
    AcceptSetup(SetupPlace place, std::function<void()> ring, const CommSizes& sizes);
    [[nodiscard]] std::size_t message_bytes() const { return sizes_.message_bytes; }
    /// Returns the offer once the plug-in listens, each time.
    [[nodiscard]] std::optional<LinkOffer> offer();

   protected:
    Status step() override;

   private:
    const CommSizes sizes_;
    std::vector<Comm> listeners_;  // by channel, and then by lane
    LinkOffer offer_;
    bool is_listening_ = false;
};

}  // namespace pccl::transport::netplugin
