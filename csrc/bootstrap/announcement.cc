// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/announcement.h"

#include <atomic>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/clock.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/sealed_store.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/sys/process_start.h"

namespace pccl::bootstrap {
namespace {

constexpr std::size_t kLongestReason = 4 * kKiB;
constexpr std::size_t kLongestEndpoint = 8 * kKiB;
constexpr std::int64_t kClocksDiffer = 1000;  // milliseconds between two machines

std::string presence_key(Rank rank) { return concat("pccl/presence/", rank); }

std::atomic<std::int64_t>& attempt_start() {
    static std::atomic<std::int64_t> start{sys::process_start_ms()};
    return start;
}

}  // namespace

std::string Announcement::serialise() const {
    ByteWriter out;
    out.i64(at_ms);
    out.text(endpoint.serialise());
    out.status(failure, kLongestReason);
    return out.take();
}

Result<Announcement> Announcement::deserialise(std::string_view bytes) {
    ByteReader in(bytes);
    Announcement read;
    std::string endpoint;
    PCCL_TRY(in.i64(read.at_ms));
    PCCL_TRY(in.text(endpoint, kLongestEndpoint));
    PCCL_TRY(in.status(read.failure, kLongestReason));
    PCCL_TRY(in.finish());
    PCCL_ASSIGN_OR_RETURN(read.endpoint, Endpoint::deserialise(endpoint));
    return read;
}

Result<Announcement> announcement_of(Endpoint endpoint, Status failure) {
    Announcement made{
        .endpoint = std::move(endpoint), .at_ms = wall_clock_ms(), .failure = std::move(failure)};
    std::uint64_t& nonce = made.endpoint.nonce;
    PCCL_TRY(sys::fill_random({reinterpret_cast<std::uint8_t*>(&nonce), sizeof nonce}));
    return made;
}

Status announce(Store& pre_join, const Announcement& own) {
    return pre_join.set(presence_key(own.endpoint.rank), own.serialise());
}

Result<Announcement> announced(Store& pre_join, Rank rank) {
    const std::string key = presence_key(rank);
    PCCL_ASSIGN_OR_RETURN(const std::string blob,
                          pre_join.get(key, Deadline::after(Duration::zero())));
    if (blob.empty()) return Status::timeout(concat("rank ", rank, " has joined"), rank);
    PCCL_TRY(check_unsealed(blob));
    PCCL_ASSIGN_OR_RETURN(Announcement found, Announcement::deserialise(blob));
    if (found.endpoint.rank == rank) return found;
    return Status::invalid_argument(
        concat("rank ", found.endpoint.rank, " is announced as rank ", rank));
}

Result<Announcement> unproven_announcement(Store& pre_join, Rank rank) {
    PCCL_ASSIGN_OR_RETURN(const std::string blob, unproven_value(pre_join, presence_key(rank)));
    return Announcement::deserialise(blob);
}

Status withdraw(Store& pre_join, Rank rank) { return pre_join.set(presence_key(rank), {}); }

void begin_attempt() { attempt_start().store(wall_clock_ms()); }

Contemporaries::Contemporaries(std::string machine)
    : Contemporaries(std::move(machine), attempt_start().load()) {}

void Contemporaries::note(Rank rank, std::uint64_t nonce) { seen_.try_emplace(rank, nonce); }

void Contemporaries::saw_alive(const Announcement& other) {
    seen_[other.endpoint.rank].alive = other.endpoint.nonce;
}

bool Contemporaries::counts(const Announcement& other) const {
    const Endpoint& endpoint = other.endpoint;
    const auto seen = seen_.find(endpoint.rank);
    const bool was_here = seen != seen_.end() && (seen->second.alive == endpoint.nonce ||
                                                  seen->second.first != endpoint.nonce);
    // A process that lacks the resources to detect its machine leaves it empty.
    const bool shares_clock = endpoint.machine == machine_ || endpoint.machine.empty();
    const std::int64_t slack = shares_clock ? 0 : kClocksDiffer;
    return was_here || other.at_ms - slack > since_ms_;
}

}  // namespace pccl::bootstrap
