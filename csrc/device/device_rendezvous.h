// SPDX-License-Identifier: Apache-2.0

// Rendezvous of the ranks of a group of GPUs through votes in the store, before their sockets are
// connected. A rank that cannot join publishes its reason there.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include <pccl/store.h>
#include "csrc/base/ids.h"
#include "csrc/base/log/wait_notice.h"
#include "csrc/base/threads/interruptible.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/peer_sockets.h"

namespace pccl::device {

class DeviceRendezvous {
   public:
    struct RendezvousOptions {
        std::shared_ptr<Store> store{};
        Rank rank = 0;
        int size = 1;
        std::chrono::milliseconds timeout{};
        const Cancellation* cancellation = nullptr;  // ends every wait; may be null
    };
    explicit DeviceRendezvous(RendezvousOptions options);

    [[nodiscard]] Deadline deadline() const { return deadline_; }
    [[nodiscard]] int size() const { return options_.size; }
    [[nodiscard]] bool is_cancelled() const;

    // Waits for other ranks fail once a rank has objected. kTimeout names the missing ranks.

    /// Agrees that all ranks are on one host and able to join; `here` is this rank's state. The
    /// first objection applies to all ranks.
    Status agree_on_host(const Status& here);
    /// Connects sockets between all ranks; a group of one rank connects none.
    [[nodiscard]] Result<std::unique_ptr<transport::nvlink::PeerSockets>> connect() const;
    /// Returns what `peer` publishes as its `subject`.
    [[nodiscard]] Result<std::string> receive(Rank peer, std::string_view subject) const;
    Status publish(std::string_view subject, const std::string& what) const;
    /// Returns the reason why a rank will not join, if one is published by now.
    [[nodiscard]] Status objection() const;
    /// Agrees that all ranks have `met`. A rank whose status is an error calls leave() after
    /// publishing it.
    template <typename Leave>
    Status agree(const Status& met, Leave leave) {
        if (met.code() == StatusCode::kTimeout) return met;
        if (options_.size == 1) return as_published(met);
        PCCL_TRY(vote_on(met));
        if (!met.is_ok()) leave();
        return votes("met").status();
    }
    /// Publishes why this rank, which is cancelled, will not join, and returns the reason.
    [[nodiscard]] Status call_off() const;

   private:
    [[nodiscard]] Result<bootstrap::GroupIdentity> agree_on_identity() const;
    [[nodiscard]] std::string key(std::string_view subject, Rank rank) const;
    /// Returns the result of get(deadline), which waits. Checks for objections in between.
    template <typename Get>
    [[nodiscard]] auto get_unless_refused(Rank awaited,
                                          Get get) const -> decltype(get(Deadline::never()));
    void warn_late(Rank awaited) const;
    /// Returns the reason why this rank will not join, as others read it.
    [[nodiscard]] Status as_published(const Status& why) const;
    /// Publishes `met`. A rank that fails because another has objected publishes that one's reason.
    Status vote_on(const Status& met) const;
    [[nodiscard]] Result<std::vector<std::string>> votes(std::string_view subject) const;

    const RendezvousOptions options_;
    const Deadline deadline_;
    const TimePoint begun_ = system_clock().now();
    mutable WaitNotice notice_;
};

/// Returns kUnsupported for more ranks than GPUs of one host can be, and kInvalidArgument where
/// `rank` is not one of them.
[[nodiscard]] Status check(const DeviceRendezvous::RendezvousOptions& options);

/// Makes an object with a part on every rank, on all ranks or on none: each rank makes its part on
/// the GPU of the driver that `open` returns, and `meet` shares it. A rank that cannot join, or is
/// cancelled, publishes its reason. Where meeting failed, the rank destroys its part before it
/// votes: this closes its sockets, and so ends the waits of its peers.
template <typename Part, typename Open, typename Make>
Result<std::unique_ptr<Part>> make_together(const DeviceRendezvous::RendezvousOptions& options,
                                            Open open, Make make,
                                            Status (Part::*meet)(const DeviceRendezvous&)) {
    PCCL_TRY(check(options));
    DeviceRendezvous rendezvous(options);
    const auto attend = [&]() -> Result<std::unique_ptr<Part>> {
        const Result<sys::cuda::Driver*> driver = open();
        PCCL_TRY(rendezvous.agree_on_host(driver.status()));
        std::unique_ptr<Part> part = make(**driver);
        PCCL_TRY(rendezvous.agree((part.get()->*meet)(rendezvous), [&part] { part.reset(); }));
        return part;
    };
    auto made = attend();
    if (!made.is_ok() && rendezvous.is_cancelled()) return rendezvous.call_off();
    return made;
}

}  // namespace pccl::device
