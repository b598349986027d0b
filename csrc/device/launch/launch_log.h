// What a group launches on its GPU, for the flight recorder and for errors. A launch carries the
// ticket of its entry there, by which kernels say what they wait in.
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
    /// `control` is where the kernels of `group` leave word.
    static std::shared_ptr<LaunchLog> open(runtime::FlightGroup group, Control control);

    // One call at a time: the group's. What is captured is remembered, for it may run much later.

    /// Of collectives that are called together, of which there is one at least.
    runtime::FlightTicket begin(std::span<const Collective> collectives, bool is_captured);
    /// Of `calls` messages, of which this is the first.
    runtime::FlightTicket begin(runtime::FlightKind kind, const runtime::FlightMessage& message,
                                std::size_t calls, bool is_captured);
    /// The first of the collectives that began last.
    [[nodiscard]] const abi::CollectiveHeader& call() const { return call_; }
    /// Launched, or why not.
    void end(runtime::FlightTicket ticket, const Status& outcome);
    /// Of the last that began, as if it had never been called: the peers know nothing of it.
    void refuse(runtime::FlightTicket ticket, const Status& why);

    /// "all_reduce #7 (sum of 1024 float32)"; from any thread.
    [[nodiscard]] std::string operation(runtime::FlightTicket ticket) const;
    // From any thread; takes 30 ms at most, and nothing where no kernel has waited for long.

    [[nodiscard]] std::vector<runtime::FlightWait> waits() const override {
        return by_peer(current_waits());
    }
    [[nodiscard]] runtime::FlightProgress progress() const override;

   private:
    LaunchLog(Rank rank, Control control) : rank_(rank), control_(std::move(control)) {}
    runtime::FlightTicket keep(runtime::FlightTicket ticket, bool is_captured);
    /// Waits that are long already, by phase and peer; those that nobody renews are forgotten.
    static constexpr std::size_t kWaits = sizeof(abi::DeviceControl::waits) / sizeof(abi::LongWait);
    using Waits = std::array<abi::LongWait, kWaits>;
    [[nodiscard]] abi::LongWait& written(std::size_t index) const;
    [[nodiscard]] Waits waits_as_written() const;
    [[nodiscard]] Waits current_waits() const;
    /// Its ticket is 0 where there is none.
    [[nodiscard]] runtime::FlightWait longest_for(Rank peer, const Waits& waits) const;
    [[nodiscard]] std::vector<runtime::FlightWait> by_peer(const Waits& waits) const;
    /// The first collective that did not get through, of those that run as they were called.
    [[nodiscard]] runtime::FlightTicket reached(const Waits& waits) const;

    const Rank rank_;
    const Control control_;
    std::uint32_t group_ = 0;
    std::uint32_t sequence_ = 0;
    abi::CollectiveHeader call_{};
    runtime::FlightKind last_ = runtime::FlightKind::kCollective;
    mutable std::mutex mutex_;  // guards what follows
    std::map<runtime::FlightTicket, runtime::FlightEntry> captured_;
};

}  // namespace pccl::device
