// What sessions (csrc/p2p) of this process went through last: connections, refusals, transfers.
//
// Peers have names and incarnations there, not ranks and groups: so these are no entries of
// flight_recorder.h, and stand beside them in a flight record. Transfers are written with plain
// stores, as operations are; all else is rare, and has its text.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/fork.h"
#include "csrc/base/status.h"
#include "csrc/runtime/flight/record_ring.h"

namespace pccl::runtime {

enum class SessionEventKind : std::uint8_t { kConnected, kLost, kDisplaced, kRefused };

struct SessionEvent {
    TimePoint at{};
    SessionEventKind kind{};
    std::string session{};    // of this process
    std::string peer{};       // its name, process and host; empty: none is known
    std::string text{};       // why, the last time
    std::uint64_t times = 1;  // that it happened, with nothing else of its kind in between
};

/// Two sessions that have a connection, or try to.
struct SessionPair {
    std::uint32_t id = 0;
    std::string session{};  // of this process
    std::string peer{};
};

/// Literals; empty: none was taken.
struct SessionPath {
    std::string_view kind{};
    std::string_view how{};
};

struct SessionTransfer {
    std::uint64_t number = 0;  // counts those of this process, from 1
    std::uint32_t pair = 0;
    bool writes = false;
    std::uint64_t bytes = 0;
    TimePoint posted{};
    TimePoint ended{};  // TimePoint{}: it has not
    StatusCode outcome = StatusCode::kOk;
    SessionPath path{};  // of one that has ended
};

/// One in a process, for good.
class PCCL_API SessionRecorder {
   public:
    static constexpr std::size_t kTransfers = 1024;  // a power of two
    static constexpr std::size_t kEvents = 256;
    static constexpr std::size_t kPairs = 1024;

    SessionRecorder() { hold_while_forking(mutex_); }
    SessionRecorder(const SessionRecorder&) = delete;
    SessionRecorder& operator=(const SessionRecorder&) = delete;
    ~SessionRecorder() = default;

    /// Those of the oldest pairs are forgotten when kPairs younger ones exist.
    std::uint32_t add_pair(std::string session, std::string peer);
    /// Refusals of a session that follow each other are one, so that they hide nothing.
    void add_event(SessionEvent event);
    /// One that has ended, or will be told to. Its number; that of `transfer` does not count.
    std::uint64_t add(const SessionTransfer& transfer);
    /// `path` has the kind as the literal of to_string(TransportKind).
    void ended(std::uint64_t number, const Status& outcome, const SessionPath& path, TimePoint now);

    /// What is still there, oldest first; those that are being written are left out.
    [[nodiscard]] std::vector<SessionTransfer> transfers() const;
    [[nodiscard]] std::vector<SessionEvent> events() const;
    [[nodiscard]] std::vector<SessionPair> pairs() const;

   private:
    struct Fields {
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<std::uint32_t> pair{0};
        std::atomic<bool> writes{false};
        std::atomic<StatusCode> outcome{StatusCode::kOk};
        std::atomic<TimePoint> posted{};
        std::atomic<TimePoint> ended{};
        std::atomic<const char*> kind{nullptr};
        std::atomic<const char*> how{nullptr};
    };
    static SessionTransfer read(std::uint64_t number, const Fields& fields);

    RecordRing<Fields, kTransfers> ring_;
    mutable std::mutex mutex_;  // guards what follows
    std::uint32_t last_pair_ = 0;
    std::deque<SessionPair> pairs_;
    std::deque<SessionEvent> events_;
};

/// That of this process.
[[nodiscard]] PCCL_API SessionRecorder& session_recorder();

}  // namespace pccl::runtime
