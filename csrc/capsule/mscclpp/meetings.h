// Where each thing that a GPU of a plan writes to another, or reads of it, is met there.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// An operation of a thread block.
struct At {
    Rank gpu = 0;
    std::size_t block = 0;
    std::size_t op = 0;
    auto operator<=>(const At&) const = default;
};

/// A message: what `src` names goes to `dst`, of another GPU.
struct Delivery {
    Chunks src{};
    Chunks dst{};
    At sent{};
    At received{};
    bool is_read = false;  // by the receiver, in the memory of the sender
};

class Meetings {
   public:
    [[nodiscard]] static Result<Meetings> make(const Plan& plan, const std::string& file);

    /// What an operation writes to others; or what it signals to readers that they may read.
    [[nodiscard]] std::vector<Delivery> sent_by(const At& at, bool is_read) const;
    /// What comes before an operation moves anything; or what it reads itself.
    [[nodiscard]] std::vector<Delivery> received_by(const At& at, bool is_read) const;

   private:
    explicit Meetings(const Plan& plan, const std::string& file) : plan_(plan), file_(file) {}

    /// From a GPU to another over one of their connections.
    using Way = std::tuple<Rank, Rank, ChannelType, int>;
    /// A place that a packet is written to.
    using Slot = std::tuple<Rank, schedule::Buffer, int>;

    struct Packet {
        Delivery delivery{};
        bool has_come = false;
    };
    struct Signal {
        At at{};
        std::vector<Delivery> told{};  // written since the last one
    };

    using Note = Status (Meetings::*)(const At& at, const Operation& operation);
    [[nodiscard]] Status for_each_operation(Note note);
    template <typename... Parts>
    [[nodiscard]] Status refuse(const At& at, const Parts&... parts) const;

    [[nodiscard]] Status note_writes(const At& at, const Operation& operation);
    [[nodiscard]] Status note_writes_and_signals(const At& at, const Operation& operation);
    [[nodiscard]] Status note_waits_and_reads(const At& at, const Operation& operation);
    [[nodiscard]] Status note_waits(const At& at, const Operation& operation);
    [[nodiscard]] Status note_reads(const At& at, const Operation& operation);
    [[nodiscard]] Status check_all_met() const;
    void add(const Delivery& delivery);

    const Plan& plan_;
    const std::string& file_;
    std::map<std::tuple<Rank, std::size_t, Rank>, std::vector<Delivery>> untold_;  // by block, peer
    std::map<Slot, Packet> packets_;
    std::map<Way, std::vector<Signal>> signals_;
    std::map<Way, std::size_t> waits_;
    std::map<std::tuple<Rank, std::size_t, Rank>, At> last_signal_awaited_;  // by block, peer
    std::map<At, std::vector<Delivery>> sent_;
    std::map<At, std::vector<Delivery>> received_;
};

}  // namespace pccl::capsule::mscclpp
