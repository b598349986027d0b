// How the ranks of a group of GPUs agree, before their sockets are connected: by votes in the
// store. A rank that cannot come, or will not, publishes why there.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/ids.h"
#include "csrc/base/interruptible.h"
#include "csrc/base/status.h"
#include "csrc/base/wait_notice.h"
#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/peer_sockets.h"

namespace pccl::device {

class DeviceRendezvous {
   public:
    struct RendezvousOptions {
        std::shared_ptr<bootstrap::Store> store{};
        Rank rank = 0;
        int size = 1;
        std::chrono::milliseconds timeout{};
        const Cancellation* cancellation = nullptr;  // ends every wait; may be null
    };
    explicit DeviceRendezvous(RendezvousOptions options);

    [[nodiscard]] Deadline deadline() const { return deadline_; }
    [[nodiscard]] int size() const { return options_.size; }
    [[nodiscard]] bool is_cancelled() const;

    // What waits for others fails once a rank has objected; kTimeout names who has not come.

    /// All ranks are on one host, and well; `here` is what this one says of itself. The first that
    /// objects decides for all.
    Status agree_on_host(const Status& here);
    /// Sockets between all ranks; of one rank, none.
    [[nodiscard]] Result<std::unique_ptr<transport::nvlink::PeerSockets>> connect() const;
    /// Returns what `peer` publishes as its `subject`.
    [[nodiscard]] Result<std::string> receive(Rank peer, std::string_view subject) const;
    Status publish(std::string_view subject, const std::string& what) const;
    /// Why a rank will not come, if one has published it by now.
    [[nodiscard]] Status objection() const;
    /// All ranks have `met`. One that has not calls leave() once it has published why.
    template <typename Leave>
    Status agree(const Status& met, Leave leave) {
        if (met.code() == StatusCode::kTimeout) return met;
        if (options_.size == 1) return as_published(met);
        PCCL_TRY(vote_on(met));
        if (!met.is_ok()) leave();
        return votes("met").status();
    }
    /// Tells the others why this rank, which is cancelled, will not come, and returns that.
    [[nodiscard]] Status call_off() const;

   private:
    [[nodiscard]] Result<bootstrap::GroupIdentity> agree_on_identity() const;
    [[nodiscard]] std::string key(std::string_view subject, Rank rank) const;
    /// What get(deadline) gives, which waits; objections are looked for now and then.
    template <typename Get>
    [[nodiscard]] auto get_unless_refused(Rank awaited,
                                          Get get) const -> decltype(get(Deadline::never()));
    void warn_late(Rank awaited) const;
    /// Why this rank will not come, as others read it.
    [[nodiscard]] Status as_published(const Status& why) const;
    /// A rank that fails because another has objected publishes the reason of that one.
    Status vote_on(const Status& met) const;
    [[nodiscard]] Result<std::vector<std::string>> votes(std::string_view subject) const;

    const RendezvousOptions options_;
    const Deadline deadline_;
    const TimePoint begun_ = system_clock().now();
    mutable WaitNotice notice_;
};

/// kUnsupported: more ranks than GPUs of one host can be; kInvalidArgument: no rank of these.
[[nodiscard]] Status check(const DeviceRendezvous::RendezvousOptions& options);

/// What all ranks make together, or none: each its part, on the GPU of the driver that `open`
/// gives. `meet` shares it. A rank that cannot come, or is cancelled, tells the others why; the
/// part of one that has not met goes before it votes, so that peers that wait for it see its
/// sockets close.
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
