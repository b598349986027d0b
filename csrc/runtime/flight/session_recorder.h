// SPDX-License-Identifier: Apache-2.0

// Recorder of the last events of this process's sessions (csrc/p2p): connections, refusals,
// transfers.
//
// Peers of sessions have names and incarnations instead of ranks and groups. These records are
// therefore separate from flight_recorder.h, and appear beside them in a flight record. Transfers
// are written with plain stores, as operations are; all other events are rare and contain text.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/fork.h"
#include "csrc/runtime/flight/record_ring.h"

namespace pccl::runtime {

enum class SessionEventKind : std::uint8_t { kConnected, kLost, kDisplaced, kRefused };

struct SessionEvent {
    TimePoint at{};
    SessionEventKind kind{};
    std::string session{};    // of this process
    std::string peer{};       // name, process and host; empty: unknown
    std::string text{};       // reason, of the last one
    std::uint64_t times = 1;  // number of such events without another kind in between
};

/// Two sessions that have a connection, or try to make one.
struct SessionPair {
    std::uint32_t id = 0;
    std::string session{};  // of this process
    std::string peer{};
};

/// Path of a transfer, as string literals; empty: none was taken.
struct SessionPath {
    std::string_view kind{};
    std::string_view how{};
};

struct SessionTransfer {
    std::uint64_t number = 0;  // its number in this process, from 1
    std::uint32_t pair = 0;
    bool writes = false;
    std::uint64_t bytes = 0;
    TimePoint posted{};
    TimePoint ended{};  // TimePoint{}: not ended
    StatusCode outcome = StatusCode::kOk;
    SessionPath path{};  // valid once ended
};

/// Process-wide recorder, which is never destroyed.
class PCCL_API SessionRecorder {
   public:
    static constexpr std::size_t kTransfers = 1024;  // a power of two
    static constexpr std::size_t kEvents = 256;
    static constexpr std::size_t kPairs = 1024;

    SessionRecorder() { hold_while_forking(mutex_); }
    SessionRecorder(const SessionRecorder&) = delete;
    SessionRecorder& operator=(const SessionRecorder&) = delete;
    ~SessionRecorder() = default;

    /// Adds a pair and returns its number. The records of the oldest pair are dropped when kPairs
    /// younger ones exist.
    std::uint32_t add_pair(std::string session, std::string peer);
    /// Adds an event. Successive refusals of a session are merged, so that they do not displace
    /// other events.
    void add_event(SessionEvent event);
    /// Adds a transfer that has ended, or that ended() will complete. Returns its number; the
    /// number in `transfer` is ignored.
    std::uint64_t add(const SessionTransfer& transfer);
    /// Completes a transfer. The kind in `path` must be the literal of to_string(TransportKind).
    void ended(std::uint64_t number, const Status& outcome, const SessionPath& path, TimePoint now);

    /// Returns the recorded transfers, oldest first, without those that are being written.
    [[nodiscard]] std::vector<SessionTransfer> transfers() const;
    [[nodiscard]] std::vector<SessionEvent> events() const;
    [[nodiscard]] std::vector<SessionPair> pairs() const;

   private:
    struct TransferFields {
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<std::uint32_t> pair{0};
        std::atomic<bool> writes{false};
        std::atomic<StatusCode> outcome{StatusCode::kOk};
        std::atomic<TimePoint> posted{};
        std::atomic<TimePoint> ended{};
        std::atomic<const char*> kind{nullptr};
        std::atomic<const char*> how{nullptr};
    };
    static SessionTransfer read(std::uint64_t number, const TransferFields& fields);

    RecordRing<TransferFields, kTransfers> ring_;
    mutable std::mutex mutex_;  // guards the members below
    std::uint32_t last_pair_ = 0;
    std::deque<SessionPair> pairs_;
    std::deque<SessionEvent> events_;
};

/// Returns the recorder of this process.
[[nodiscard]] PCCL_API SessionRecorder& session_recorder();

/// Returns {"events": [...], "transfers": [...]}.
[[nodiscard]] nlohmann::json json_of(const SessionRecorder& recorder);

}  // namespace pccl::runtime
