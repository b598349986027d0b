// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/links/strands.h"

#include <algorithm>

#include "csrc/base/assert.h"
#include "csrc/collective/collective.h"
#include "csrc/sys/cpu/helper_pool.h"
#include "csrc/sys/cpu/shift.h"

namespace pccl::comm {
namespace {

// The caller must look at its deadline and for signals now and then.
constexpr Duration kLongestShift = std::chrono::milliseconds(10);

}  // namespace

Result<transport::SendLink*> Strands::SharedLinks::send_link(const schedule::PeerPort& to) {
    const std::lock_guard lock(mutex_);
    return links_.send_link(to);
}

transport::RecvLink* Strands::SharedLinks::receive_link(const schedule::PeerPort& from) {
    const std::lock_guard lock(mutex_);
    return links_.receive_link(from);
}

void Strands::use_helpers(int helpers, const sys::CoreSet& cores) {
    cores_ = cores;
    count_ = sys::HelperCount(helpers, "transfers over links");
}

void Strands::start(const std::shared_ptr<const LinkProgram>& program, const Cut& cut,
                    const abi::CollectiveHeader& header, const Collective& collective,
                    const arithmetic::Accumulator& accumulator) {
    PCCL_ASSERT(cut.strands >= 1 && cut.strands <= Cut::kMostStrands);
    used_ = cut.strands;
    while (strands_.size() < used_)
        strands_.push_back(std::make_unique<Strand>(links_, timeline_, strands_.size()));
    for (std::size_t i = 0; i < used_; ++i) {
        strands_[i]->is_done = false;
        strands_[i]->executor.start(program, cut, header, collective, accumulator);
    }
    if (used_ == 1) return;
    is_timed_ = timeline_.is_on();
    bytes_ = longest(collective) * size_of(collective.type);
    begun_ = system_clock().now();
}

Result<bool> Strands::progress(bool& moved) {
    if (used_ == 1) return strands_.front()->executor.progress(moved);
    const int helpers = is_timed_ ? 0 : count_.next(bytes_);
    PCCL_TRY(helpers > 0 ? progress_with(helpers, moved) : progress_all(moved));
    if (!are_all_done()) return false;
    if (!is_timed_) count_.record(bytes_, system_clock().now() - begun_);
    return true;
}

Status Strands::progress_strand(Strand& strand, bool& moved) {
    if (strand.is_done) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(strand.is_done, strand.executor.progress(moved));
    return Status::ok();
}

Status Strands::progress_all(bool& moved) {
    for (std::size_t i = 0; i < used_; ++i) PCCL_TRY(progress_strand(*strands_[i], moved));
    return Status::ok();
}

Status Strands::progress_with(int helpers, bool& moved) {
    sys::Shift shift(kLongestShift);
    for (std::size_t i = 0; i < used_; ++i) strands_[i]->failure = Status::ok();
    sys::HelperPool::of_process().run(helpers, cores_, [&](int) { work(shift); });
    moved |= shift.has_moved();
    for (std::size_t i = 0; i < used_; ++i) PCCL_TRY(strands_[i]->failure);
    return Status::ok();
}

Strands::Moves Strands::progress_share(sys::Shift& shift, std::size_t number) {
    const std::size_t workers = shift.workers();
    Moves moves;
    for (std::size_t i = number % used_; i < used_; i += workers) {
        Strand& strand = *strands_[i];
        const std::unique_lock lock(strand.mutex, std::try_to_lock);
        if (!lock) continue;
        if (!strand.is_done && strand.failure.is_ok())
            strand.failure = progress_strand(strand, moves.moved);
        if (!strand.failure.is_ok()) shift.end();
        moves.is_any_left |= !strand.is_done;
    }
    return moves;
}

void Strands::work(sys::Shift& shift) {
    const std::size_t number = shift.join();
    // Each worker has every n-th strand; a late one takes its strands over from others.
    Moves moves;
    do {
        moves = progress_share(shift, number);
    } while (shift.goes_on(moves.moved, moves.is_any_left));
}

bool Strands::are_all_done() const {
    return std::all_of(strands_.begin(), strands_.begin() + static_cast<std::ptrdiff_t>(used_),
                       [](const auto& strand) { return strand->is_done; });
}

bool Strands::is_flushed() const {
    return std::all_of(strands_.begin(), strands_.begin() + static_cast<std::ptrdiff_t>(used_),
                       [](const auto& strand) { return strand->executor.is_flushed(); });
}

AwaitedRanks Strands::awaited() const {
    AwaitedRanks ranks;
    for (std::size_t i = 0; i < used_; ++i) {
        for (const Awaited& awaited : strands_[i]->executor.awaited())
            if (std::ranges::find(ranks, awaited) == ranks.end()) ranks.push_back(awaited);
    }
    return ranks;
}

}  // namespace pccl::comm
