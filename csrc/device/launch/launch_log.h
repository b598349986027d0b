// SPDX-License-Identifier: Apache-2.0

// Log of a group's launches on its GPU, for the flight recorder and for errors. A launch carries
// the ticket of its entry, and kernels report their waits under that ticket.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/abi/device_team.h"
#include "csrc/collective/collective.h"
#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::device {

class PCCL_API LaunchLog final : public runtime::FlightObserver {
   public:
    using Control = std::shared_ptr<abi::DeviceControl>;
    /// Opens the log; the kernels of `group` write their reports to `control`.
    static std::shared_ptr<LaunchLog> open(runtime::FlightGroup group, Control control);

    // The group makes one call at a time. Captured entries are kept, since they may run much later.

    /// Begins an entry for collectives that are called together; at least one.
    runtime::FlightTicket begin(std::span<const Collective> collectives, bool is_captured);
    /// Messages that are launched together.
    struct Messages {
        runtime::FlightKind kind = runtime::FlightKind::kSend;  // of the first one
        runtime::FlightMessage first{};
        std::size_t count = 1;
        std::size_t sent = 0;      // bytes
        std::size_t received = 0;  // bytes
    };
    runtime::FlightTicket begin(const Messages& messages, bool is_captured);
    /// Returns the first of the collectives of the last entry.
    [[nodiscard]] const abi::CollectiveHeader& call() const { return call_; }
    /// Ends an entry: launched, or the reason of the failure.
    void end(runtime::FlightTicket ticket, const Status& outcome);
    /// Ends the last entry with its error and reuses its number: the call did not reach the peers.
    void refuse(runtime::FlightTicket ticket, const Status& why);

    /// Returns "all_reduce #7 (sum of 1024 float32)"; from any thread.
    [[nodiscard]] std::string operation(runtime::FlightTicket ticket) const;
    // Both may be called from any thread. They take 30 ms at most, and no time where no kernel has
    // waited long.

    [[nodiscard]] std::vector<runtime::FlightWait> waits() const override {
        return by_peer(current_waits());
    }
    [[nodiscard]] runtime::FlightProgress progress() const override;
    [[nodiscard]] runtime::LaunchCounts counts() const override;

   private:
    LaunchLog(Rank rank, Control control) : rank_(rank), control_(std::move(control)) {}
    /// Notes the entry that begins, with the counts that its success adds.
    runtime::FlightTicket note(runtime::FlightTicket ticket, TimePoint now, bool is_captured,
                               const runtime::LaunchCounts& counts);
    void keep(runtime::FlightTicket ticket);
    void count(TimePoint now);
    /// Waits that are already long, by phase and peer. Waits that are not renewed are ignored.
    static constexpr std::size_t kWaits = sizeof(abi::DeviceControl::waits) / sizeof(abi::LongWait);
    using Waits = std::array<abi::LongWait, kWaits>;
    [[nodiscard]] abi::LongWait& written(std::size_t index) const;
    [[nodiscard]] Waits waits_as_written() const;
    [[nodiscard]] Waits current_waits() const;
    /// Returns the longest wait for `peer`; its ticket is 0 where there is none.
    [[nodiscard]] runtime::FlightWait longest_for(Rank peer, const Waits& waits) const;
    [[nodiscard]] std::vector<runtime::FlightWait> by_peer(const Waits& waits) const;
    /// Returns the first unfinished collective among those that run in call order.
    [[nodiscard]] runtime::FlightTicket reached(const Waits& waits) const;

    const Rank rank_;
    const Control control_;
    std::uint32_t group_ = 0;
    std::uint32_t sequence_ = 0;
    abi::CollectiveHeader call_{};
    runtime::FlightKind last_ = runtime::FlightKind::kCollective;
    runtime::LaunchCounts begun_counts_;  // of the last entry
    TimePoint begun_{};
    mutable std::mutex mutex_;  // guards the following members
    runtime::LaunchCounts counts_;
    std::map<runtime::FlightTicket, runtime::FlightEntry> captured_;
};

}  // namespace pccl::device
