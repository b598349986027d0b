// What communicators and their operations are made with.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/abi/datatype.h"
#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::bootstrap {
struct Locality;
}
namespace pccl::runtime {
class Runtime;
}

namespace pccl::comm {

class PhaseNetwork;

inline constexpr std::chrono::minutes kDefaultTimeout{30};
inline constexpr Rank kAnySource = -1;
/// Tags at and above this are the library's own; users' tags are below.
inline constexpr std::int32_t kReservedTags = 1 << 30;

/// Whether the waiting thread should stop waiting: not ok when so. Called now and then, with no
/// lock held, on threads that wait.
using InterruptCheck = std::function<Status()>;

/// Empty: the group's.
using OptionalTimeout = std::optional<std::chrono::milliseconds>;

struct CommunicatorOptions {
    Rank rank = 0;
    int size = 1;
    /// Of this group alone, at one time: it may have met there before. Null when size is 1.
    std::shared_ptr<bootstrap::Store> store{};
    /// The store of the group that this one is made of, where that met; null: `store`.
    std::shared_ptr<bootstrap::Store> base_store{};
    std::string name = "world";                           // for messages
    std::chrono::milliseconds timeout = kDefaultTimeout;  // of an operation, unless it has its own
    transport::TransportFlags transports = transport::TransportFlags::all();
    // As PCCL_ALGORITHM, which counts where this is empty; the same on all ranks.
    std::string algorithm{};
    /// What schedules there are, alike on all ranks.
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in();
    std::shared_ptr<runtime::Runtime> runtime{};  // null: the process's own
    /// The members' numbers in the whole job, by rank: what one group learns of a process that has
    /// gone, others that are being made learn through them. Empty: unknown.
    std::vector<std::uint64_t> global_ranks{};
    InterruptCheck interrupted{};
    /// Bus id of the GPU that this rank uses, "0000:0d:00.0"; empty: none, or unknown.
    std::string gpu{};
    /// Where this rank runs; null: as the kernel says.
    std::shared_ptr<const bootstrap::Locality> locality{};
    /// The network that is switched between phases under it (phase/phase_network.h); null: none.
    std::shared_ptr<PhaseNetwork> network{};
    std::vector<Rank> network_ranks{};  // the members' ranks there, by rank; empty: the same
    bool switches_phases = true;        // false: follows a group that does
};

struct ShrinkOptions {
    std::string name = {};         // empty: "<name>:shrunk"
    OptionalTimeout timeout = {};  // of operations; empty: as before
    /// The fewest ranks that may go on; empty: more than half, or half with rank 0.
    std::optional<int> least = {};
};

struct MessageOptions {
    OptionalTimeout timeout{};
    std::optional<DataType> type{};  // compared where both sides give one
    /// The caller does nothing else until it is done: a message to its own rank whose other half it
    /// has not submitted is kInvalidArgument.
    bool is_awaited = false;
};

}  // namespace pccl::comm
