// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/incarnation.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/job_exchange.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/bootstrap/rendezvous/sealed_store.h"
#include "csrc/bootstrap/secret_file.h"

namespace pccl::bootstrap {
namespace {

constexpr const char* kIncarnationKey = "pccl/incarnation";
constexpr const char* kCleanKey = "pccl/clean";  // its ranks have removed all earlier remains
constexpr std::uint16_t kIncarnationMagic = 0xE9D6;
constexpr std::size_t kLongestRoot = 16 * kKiB;
constexpr std::uint32_t kMostMembers = 1U << 24;
constexpr std::size_t kMostRemains = 16;
constexpr Duration kFirstLook = std::chrono::milliseconds(1);
constexpr Duration kLongestLook = std::chrono::milliseconds(20);

Deadline now() { return Deadline::after(Duration::zero()); }

std::span<std::byte> bytes_of_id(auto& id) { return std::as_writable_bytes(std::span(id)); }

Status read_members(ByteReader& in, int& size) {
    std::uint32_t raw = 0;
    PCCL_TRY(in.u32(raw));
    if (raw == 0 || raw > kMostMembers)
        return Status::invalid_argument(concat("a group of ", raw, " ranks"));
    size = static_cast<int>(raw);
    return Status::ok();
}

/// Half of the id distinguishes the incarnations in one store.
std::string prefix_of(const transport::GroupId& group) {
    std::uint64_t half = 0;
    static_assert(sizeof group >= sizeof half);
    std::memcpy(&half, group.data(), sizeof half);
    return concat("pccl/", hex_digits(half));
}

void remove_part(Store& store, Rank rank, int size) {
    remove_roster(store, rank, size);
    remove_job(store, rank, size);
}

Result<GroupIdentity> with_job_secret(GroupIdentity identity) {
    PCCL_ASSIGN_OR_RETURN(const auto job, job_secret(identity.group));
    identity.secret = job.value_or(identity.secret);
    return identity;
}

}  // namespace

std::string Incarnation::serialise() const {
    ByteWriter out;
    out.u16(kIncarnationMagic);
    out.raw(std::as_bytes(std::span(identity.group)));
    out.raw(std::as_bytes(std::span(identity.secret)));
    out.u32(static_cast<std::uint32_t>(size));
    out.text(root.serialise());
    out.u32(static_cast<std::uint32_t>(remains.size()));
    for (const Remains& left : remains) {
        out.raw(std::as_bytes(std::span(left.group)));
        out.u32(static_cast<std::uint32_t>(left.size));
    }
    return out.take();
}

Result<Incarnation> Incarnation::deserialise(std::string_view bytes) {
    ByteReader in(bytes);
    Incarnation read;
    std::uint16_t magic = 0;
    std::string root;
    std::uint32_t count = 0;
    PCCL_TRY(in.u16(magic));
    if (magic != kIncarnationMagic) return Status::invalid_argument("it does not start like one");
    PCCL_TRY(in.raw(bytes_of_id(read.identity.group)));
    PCCL_TRY(in.raw(bytes_of_id(read.identity.secret)));
    PCCL_TRY(read_members(in, read.size));
    PCCL_TRY(in.text(root, kLongestRoot));
    PCCL_ASSIGN_OR_RETURN(read.root, Announcement::deserialise(root));
    PCCL_TRY(in.u32(count));
    if (count > kMostRemains) return Status::invalid_argument(concat(count, " ended incarnations"));
    for (read.remains.resize(count); Remains & left : read.remains) {
        PCCL_TRY(in.raw(bytes_of_id(left.group)));
        PCCL_TRY(read_members(in, left.size));
    }
    PCCL_TRY(in.finish());
    return read;
}

std::shared_ptr<Store> Incarnations::store() const {
    return prefixed(group_namespace(rendezvous_.pre_join, current_->identity),
                    prefix_of(current_->identity.group));
}

Result<std::optional<Incarnation>> Incarnations::read() {
    const auto blob = rendezvous_.pre_join->get(kIncarnationKey, now());
    is_there_ = blob.status().code() != StatusCode::kTimeout;
    if (!is_there_) return std::optional<Incarnation>();
    if (blob.status().code() == StatusCode::kInvalidArgument) return judged(blob.status());
    PCCL_TRY(blob.status());
    if (const Status sealed = check_unsealed(*blob); !sealed.is_ok()) return judged(sealed);
    auto found = Incarnation::deserialise(*blob);
    if (!found.is_ok()) return std::optional<Incarnation>();  // an entry of a stranger
    PCCL_ASSIGN_OR_RETURN(found->identity, with_job_secret(found->identity));
    return std::optional(std::move(*found));
}

Result<std::optional<Incarnation>> Incarnations::judged(const Status& unusable) const {
    const auto raw = unproven_value(*rendezvous_.pre_join, kIncarnationKey);
    const auto found = raw.is_ok() ? Incarnation::deserialise(*raw) : raw.status();
    if (!found.is_ok() || !rendezvous_.contemporaries->counts(found->root))
        return std::optional<Incarnation>();
    return unusable;
}

Result<GroupIdentity> Incarnations::open() {
    PCCL_ASSIGN_OR_RETURN(const GroupIdentity fresh, fresh_identity());
    Incarnation opened{.identity = fresh, .size = rendezvous_.size, .root = own_};
    PCCL_ASSIGN_OR_RETURN(const std::optional<Incarnation> before, read());
    if (before) opened.remains = remains_of(*before);
    PCCL_TRY(rendezvous_.pre_join->set(kIncarnationKey, opened.serialise()));
    PCCL_ASSIGN_OR_RETURN(opened.identity, with_job_secret(opened.identity));
    current_ = std::move(opened);
    return current_->identity;
}

std::vector<Incarnation::Remains> Incarnations::remains_of(const Incarnation& before) {
    std::vector<Incarnation::Remains> remains;
    const auto clean = rendezvous_.pre_join->get(kCleanKey, now());
    if (!clean.is_ok() || *clean != prefix_of(before.identity.group)) remains = before.remains;
    if (remains.size() == kMostRemains) remains.erase(remains.begin());
    remains.push_back({before.identity.group, before.size});
    return remains;
}

Result<GroupIdentity> Incarnations::next() {
    pause_ = kFirstLook;
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(std::optional<Incarnation> found, read());
        const bool is_new =
            found && (!current_ || found->identity.group != current_->identity.group);
        if (is_new) {
            PCCL_ASSIGN_OR_RETURN(const auto taken, take(std::move(*found)));
            if (taken) return *taken;
        }
        has_looked_ = true;
        PCCL_TRY(wait_for_change());
    }
}

/// Returns nullopt for an incarnation of another attempt.
Result<std::optional<GroupIdentity>> Incarnations::take(Incarnation found) {
    if (has_looked_) rendezvous_.contemporaries->saw_alive(found.root);
    current_ = std::move(found);
    is_passed_over_ = true;  // also while the store of an earlier group ends before it answers
    PCCL_ASSIGN_OR_RETURN(const bool has_met, has_roster(*store()));
    if (has_met) return std::optional<GroupIdentity>();
    is_passed_over_ = false;
    if (current_->size == rendezvous_.size) return std::optional(current_->identity);
    if (counts())
        return Status::mismatch(0, concat("rank 0 made a group of ", current_->size,
                                          " ranks, this rank one of ", rendezvous_.size));
    is_passed_over_ = true;
    return std::optional<GroupIdentity>();
}

/// Polls an unusable entry that exists; otherwise waits in the store.
Status Incarnations::wait_for_change() {
    const Duration slice = store_slice(rendezvous_.size);
    if (is_there_) {
        system_clock().sleep_for(std::min(pause_, rendezvous_.deadline.remaining()));
        pause_ = std::min(2 * pause_, kLongestLook);
    } else {
        static_cast<void>(
            rendezvous_.pre_join->get(kIncarnationKey, rendezvous_.deadline.within(slice)));
    }
    if (rendezvous_.deadline.passed()) return timeout_cause(Status::timeout("", 0));
    if (system_clock().now() - looked_around_ < slice) return Status::ok();
    looked_around_ = system_clock().now();
    return look_for_lost(*rendezvous_.pre_join, {kIncarnationKey, 0, {}}, rendezvous_);
}

Status Incarnations::check_current() {
    PCCL_ASSIGN_OR_RETURN(const std::optional<Incarnation> found, read());
    const bool is_same = found && current_ && found->identity.group == current_->identity.group;
    if (!found || is_same) return Status::ok();
    if (own_.endpoint.rank != 0) return superseded();
    return Status::mismatch(
        0, concat("another process has joined as rank 0: ", found->root.endpoint.to_string(),
                  "; give each process a rank of its own"));
}

bool Incarnations::counts() const {
    if (own_.endpoint.rank == 0) return true;
    return current_ && !is_passed_over_ && rendezvous_.contemporaries->counts(current_->root);
}

Status Incarnations::timeout_cause(const Status& late) const {
    if (own_.endpoint.rank == 0 || counts()) return late;
    const std::string before =
        current_ ? concat(" (a group of ", current_->size, " formed here before, with rank 0 at ",
                          current_->root.endpoint.to_string(), ")")
                 : std::string();
    return Status::timeout(
        concat("timed out: rank 0 has not joined", before, "; is every rank running?"), 0);
}

void Incarnations::remove_remains() const {
    const Rank self = own_.endpoint.rank;
    for (const Incarnation::Remains& left : current_->remains) {
        const auto store = prefixed(rendezvous_.pre_join, prefix_of(left.group));
        if (self < left.size) remove_part(*store, self, left.size);
        // Entries of ranks that no longer exist.
        for (Rank rank = rendezvous_.size; self == 0 && rank < left.size; ++rank)
            remove_part(*store, rank, left.size);
    }
    if (self == 0 && !current_->remains.empty())
        static_cast<void>(
            rendezvous_.pre_join->set(kCleanKey, prefix_of(current_->identity.group)));
}

}  // namespace pccl::bootstrap
