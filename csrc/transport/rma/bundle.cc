// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/bundle.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "csrc/base/assert.h"
#include "csrc/sys/cpu/helper_pool.h"
#include "csrc/sys/cpu/shift.h"
#include "csrc/transport/rma/notifications.h"

namespace pccl::transport {
namespace {

// Bytes of a part: as many as take long beside a request and its answer, and few enough that lanes
// end at about the same time.
constexpr std::uint64_t kPart = 1 * kMiB;
constexpr std::uint64_t kMostParts = 256;  // of a piece
// Limits of what is under way, without the last piece: below those of a link, so that each lane has
// room for a piece.
constexpr std::size_t kMostPartsOnLane = kRmaWindow / 2;
constexpr std::size_t kMostPiecesOnLane = kRmaListed / 2;
constexpr std::uint64_t kMostBytes = 192 * kMiB;        // on all lanes
constexpr std::uint64_t kMostBytesOfPiece = 64 * kMiB;  // on a lane, in parts
// The caller must look at its deadline, and holds the lock of a connection meanwhile.
constexpr Duration kLongestShift = std::chrono::milliseconds(4);
// Work on lanes that is timed together, to choose the number of helpers.
constexpr std::uint64_t kJob = 32 * kMiB;
constexpr Duration kLongestGap = std::chrono::milliseconds(1);  // within a job
// A peer that leaves closes all streams: what the main stream still carries comes first.
constexpr Duration kTimeForMain = std::chrono::milliseconds(200);

bool is_of_hosts(const RmaPiece& piece) {
    return piece.local->memory().kind == abi::MemoryKind::kHost &&
           piece.remote->kind == abi::MemoryKind::kHost;
}

/// Returns how many of the first pieces, at least one, make up a part, and their bytes.
std::pair<std::size_t, std::uint64_t> first_part(std::span<const RmaPiece> pieces) {
    std::uint64_t bytes = pieces.front().bytes;
    std::size_t count = 1;
    for (; count < std::min(pieces.size(), RmaBlocks::kMostListed); ++count) {
        if (pieces[count].bytes > kPart - std::min(bytes, kPart)) break;
        bytes += pieces[count].bytes;
    }
    return {count, bytes};
}

}  // namespace

struct RmaBundle::Lane {
    Lane(std::size_t its_number, RmaStreams streams, std::shared_ptr<RmaRegistry> registry)
        : number(its_number), link(std::move(streams), std::move(registry)) {}

    /// Returns whether there is anything to do. Any thread may call it.
    [[nodiscard]] bool is_busy() const { return !is_idle || begun < announced; }
    /// Publishes the state of the link. The caller progresses the lane.
    void publish() {
        is_idle = !failure.is_ok() || link.is_idle();
        begun = failure.is_ok() ? link.requests_begun() : kAll;
    }
    /// Sets `announced`. A store costs more than a comparison.
    void note_announced(std::uint64_t requests) {
        if (announced.load(std::memory_order_relaxed) != requests) announced = requests;
    }
    [[nodiscard]] bool has_room() const {
        return failure.is_ok() && parts < kMostPartsOnLane && pieces < kMostPiecesOnLane;
    }

    /// Value of `begun` of a failed lane, which is never busy.
    static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

    const std::size_t number;
    std::mutex mutex;  // of the thread that progresses it: guards the next members
    RmaStreamLink link;
    std::vector<RmaCompletion> completions;  // that were not collected
    Status failure;                          // of the link
    TimePoint failed_at{};
    std::atomic<bool> is_idle{true};
    std::atomic<std::uint64_t> begun{0};      // requests of the peer that have come
    std::atomic<std::uint64_t> announced{0};  // requests of the peer that have come or will come
    // Parts that are not over, and the requests that were announced to the peer:
    std::size_t parts = 0;
    std::size_t pieces = 0;
    std::uint64_t bytes = 0;
    std::uint64_t requests_announced = 0;
};

RmaBundle::RmaBundle(RmaStreams streams, std::shared_ptr<RmaRegistry> registry,
                     const RmaHelpers& helpers)
    : main_(std::move(streams), registry),
      registry_(std::move(registry)),
      cores_(helpers.cores),
      count_(helpers.most, "transfers of sessions over TCP") {}

RmaBundle::~RmaBundle() = default;

void RmaBundle::add_lane(std::size_t number, RmaStreams streams) {
    auto& lane = lanes_.at(number);
    if (lane != nullptr) return;
    lane = std::make_unique<Lane>(number, std::move(streams), registry_);
    abortable_.at(number).store(lane.get());
    ++lane_count_;
}

bool RmaBundle::is_large(std::span<const RmaPiece> pieces) const {
    if (lane_count_ == 0) return false;
    std::uint64_t bytes = main_.bytes_requested();
    for (const RmaPiece& piece : pieces) {
        if (piece.local == nullptr || piece.remote == nullptr || !is_of_hosts(piece)) return false;
        bytes += std::min(piece.bytes, kLarge);  // any values are safe
    }
    return bytes >= kLarge;
}

Result<std::size_t> RmaBundle::post(RmaOp op, std::span<const RmaPiece> pieces,
                                    std::uint64_t ticket) {
    PCCL_TRY(check());
    return is_large(pieces) ? spread(op, pieces, ticket) : main_.post(op, pieces, ticket);
}

Result<std::size_t> RmaBundle::spread(RmaOp op, std::span<const RmaPiece> pieces,
                                      std::uint64_t ticket) {
    PCCL_ASSIGN_OR_RETURN(const std::size_t count,
                          valid_prefix(pieces, has_room() ? pieces.size() : 0));
    if (count == 0) return count;
    RmaPost& post = posts_.begin(ticket, 0);
    std::size_t taken = 0;
    do {
        taken += spread_front(op, pieces.subspan(taken, count - taken), post);
    } while (taken < count && has_room());
    return taken;
}

std::size_t RmaBundle::spread_front(RmaOp op, std::span<const RmaPiece> pieces, RmaPost& post) {
    if (pieces.front().bytes > kPart) {
        cut(op, pieces.front(), post);
        return 1;
    }
    const auto [count, bytes] = first_part(pieces);
    return post_part({.op = op, .pieces = pieces.first(count), .bytes = bytes}, post);
}

void RmaBundle::cut(RmaOp op, const RmaPiece& piece, RmaPost& post) {
    const std::uint64_t even = (piece.bytes + kMostParts - 1) / kMostParts;
    const bool is_huge = piece.bytes > kMostBytesOfPiece * lane_count_;
    const std::uint64_t most =
        is_huge ? (piece.bytes + lane_count_ - 1) / lane_count_ : std::max(even, kPart);
    RmaPiece part = piece;
    for (std::uint64_t done = 0; done < piece.bytes; done += part.bytes) {
        part.at = piece.at + done;
        part.there = piece.there + done;
        part.bytes = std::min(piece.bytes - done, most);
        post_part({.op = op, .pieces = {&part, 1}, .bytes = part.bytes}, post);
    }
}

std::size_t RmaBundle::post_part(const PartPieces& part, RmaPost& post) {
    Lane& lane = emptiest();
    const std::uint64_t number = parts_over_ + parts_.size();
    const auto taken = lane.link.post(part.op, part.pieces, number);
    if (taken.is_ok() && *taken > 0) {
        std::uint64_t bytes = 0;
        for (const RmaPiece& piece : part.pieces.first(*taken)) bytes += piece.bytes;
        add_part(lane, post, {*taken, bytes});
        return *taken;
    }
    // The post has begun: it fails with this part.
    add_part(lane, post, {part.pieces.size(), part.bytes});
    refused_.push_back(
        {.ticket = number,
         .status = taken.is_ok() ? Status::internal("a lane without room") : taken.status()});
    return part.pieces.size();
}

void RmaBundle::add_part(Lane& lane, RmaPost& post, const PartLoad& load) {
    ++post.pieces;
    parts_.push_back({.post = &post, .lane = &lane, .load = load});
    ++lane.parts;
    lane.pieces += load.pieces;
    lane.bytes += load.bytes;
    bytes_under_way_ += load.bytes;
    lane.is_idle = false;
}

RmaBundle::Lane& RmaBundle::emptiest() const {
    const auto load = [](const Lane& lane) { return std::pair(!lane.failure.is_ok(), lane.bytes); };
    Lane* found = nullptr;
    for_lanes([&](Lane& lane) {
        if (found == nullptr || load(lane) < load(*found)) found = &lane;
    });
    PCCL_ASSERT(found != nullptr);
    return *found;
}

bool RmaBundle::has_room() const {
    return posts_.has_room() && bytes_under_way_ < kMostBytes && emptiest().has_room();
}

Result<std::size_t> RmaBundle::post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket) {
    PCCL_TRY(check());
    const std::uint64_t bytes =
        run.count > kLarge ? kLarge : run.count * std::min(run.first.bytes, kLarge);
    const bool goes_to_lanes =
        lane_count_ > 0 && is_of_hosts(run.first) && main_.bytes_requested() + bytes >= kLarge;
    return goes_to_lanes ? spread_run(op, run, ticket) : main_.post_run(op, run, ticket);
}

Result<std::size_t> RmaBundle::spread_run(RmaOp op, const RmaRun& run, std::uint64_t ticket) {
    if (!has_room()) return std::size_t{0};
    Lane& lane = emptiest();
    RmaRun part = run;
    if (run.first.bytes > 0)
        part.count = std::min(run.count, std::max<std::uint64_t>(kPart / run.first.bytes, 2));
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken,
                          lane.link.post_run(op, part, parts_over_ + parts_.size()));
    if (taken == 0) return taken;
    // The peer counts a run as one request, or as the entries of one list.
    add_part(lane, posts_.begin(ticket, 0),
             {std::min(taken, RmaBlocks::kMostListed), taken * run.first.bytes});
    return taken;
}

Result<bool> RmaBundle::notify(std::span<const std::byte> notification) {
    PCCL_TRY(check());
    if (parts_.empty() && held_.is_empty() && parts_failed_ == posts_.reported())
        return main_.notify(notification);
    PCCL_TRY(check_rma_notification(notification));
    if (!held_.has_room()) return false;
    held_.add({.bytes = {notification.begin(), notification.end()},
               .behind = parts_over_ + parts_.size(),
               .failures_known = posts_.reported(),
               .main_failures_known = main_.failures_reported()},
              parts_over_, parts_failed_);
    main_.mark_requests();
    release_notifications();
    return true;
}

void RmaBundle::release_notifications() {
    while (const auto failures = main_.take_failures_at_mark()) held_.main_over(*failures);
    held_.release([this](const RmaHeldNotifications::HeldNotification& due) {
        const auto sent = main_.notify_unconditionally(due.bytes);
        return sent.is_ok() && *sent;
    });
}

bool RmaBundle::is_flushed() const {
    bool are_flushed = main_.is_flushed() && held_.is_empty();
    for_lanes([&](const Lane& lane) { are_flushed = are_flushed && lane.link.is_flushed(); });
    return are_flushed;
}

Result<std::size_t> RmaBundle::poll(std::span<RmaCompletion> into) {
    moved_ = false;
    progress_lanes();
    const auto completed = main_.poll(into);
    note_main();
    if (status_.is_set()) end_lanes();
    const std::size_t of_main = completed.is_ok() ? *completed : 0;
    const std::size_t all = of_main + posts_.take_completions(into.subspan(of_main));
    return all > 0 ? Result<std::size_t>(all) : completed;
}

Status RmaBundle::advance() {
    moved_ = false;
    PCCL_TRY(check());
    progress_lanes();
    static_cast<void>(main_.advance());
    note_main();
    return check();
}

Result<std::optional<std::vector<std::byte>>> RmaBundle::next_notification() {
    auto notification = main_.next_notification();
    // It may have received the announcement of requests on a lane.
    moved_ |= main_.has_moved();
    return notification;
}

void RmaBundle::note_main() {
    moved_ |= main_.has_moved();
    const Status failure = main_.check();
    if (failure.is_ok() || status_.is_set()) return;
    drain_lanes();
    fail(failure);
}

void RmaBundle::drain_lanes() {
    const Deadline deadline = Deadline::after(kTimeForMain);
    for (bool has_moved = true; has_moved && !deadline.passed();) {
        has_moved = false;
        for_lanes([&](Lane& lane) { has_moved |= progress_lane(lane); });
    }
    collect();
}

void RmaBundle::progress_lanes() {
    if (lane_count_ == 0 || status_.is_set()) return;
    announce();
    if (are_lanes_busy()) {
        const TimePoint begin = system_clock().now();
        const int helpers = lane_count_ > 1 ? count_.next(kJob) : 0;
        helpers > 0 ? progress_with(helpers) : progress_alone();
        collect();
        count_time(begin);
    } else {
        last_progress_ = {};
    }
    release_notifications();
    if (failed_ != nullptr && system_clock().now() - failed_->failed_at > kTimeForMain)
        fail(failed_->failure);
}

void RmaBundle::announce() {
    for_lanes([this](Lane& lane) {
        const std::uint64_t made = lane.link.requests_made();
        if (made != lane.requests_announced && main_.announce(lane.number, made))
            lane.requests_announced = made;
    });
}

bool RmaBundle::are_lanes_busy() {
    bool is_any_busy = false;
    for_lanes([&](Lane& lane) {
        lane.note_announced(main_.announced(lane.number));
        is_any_busy |= lane.is_busy();
    });
    return is_any_busy;
}

void RmaBundle::progress_alone() {
    for_lanes([this](Lane& lane) { moved_ |= progress_lane(lane); });
}

bool RmaBundle::progress_lane(Lane& lane) {
    if (!lane.failure.is_ok()) return false;
    const Status progressed = lane.link.advance();
    if (progressed.is_ok()) {
        std::array<RmaCompletion, 16> some;
        while (const std::size_t count = lane.link.take_completions(some))
            lane.completions.insert(lane.completions.end(), some.begin(),
                                    some.begin() + static_cast<std::ptrdiff_t>(count));
    } else {
        lane.failure = progressed;
        lane.failed_at = system_clock().now();
    }
    lane.publish();
    return lane.link.has_moved();
}

void RmaBundle::progress_with(int helpers) {
    sys::Shift shift(kLongestShift);
    const int most = std::min(helpers, static_cast<int>(lane_count_) - 1);
    sys::HelperPool::of_process().run(most, cores_, [&](int worker) { work(shift, worker == 0); });
    moved_ |= shift.has_moved();
}

void RmaBundle::work(sys::Shift& shift, bool is_caller) {
    const std::size_t number = shift.join();
    bool is_any_busy = false;
    bool moved = false;
    do {
        // Each thread has every n-th lane, and looks at the others where its own have nothing.
        moved = progress_share(number, shift.workers()) || progress_share(0, 1);
        if (is_caller) moved |= progress_main(shift);
        is_any_busy = false;
        for_lanes([&](const Lane& lane) { is_any_busy |= lane.is_busy(); });
    } while (shift.goes_on(moved, is_any_busy));
}

bool RmaBundle::progress_share(std::size_t first, std::size_t step) {
    bool moved = false;
    for (std::size_t i = first % lanes_.size(); i < lanes_.size(); i += step) {
        Lane* const lane = lanes_.at(i).get();
        if (lane == nullptr || !lane->is_busy()) continue;
        const std::unique_lock lock(lane->mutex, std::try_to_lock);
        if (lock.owns_lock()) moved |= progress_lane(*lane);
    }
    return moved;
}

bool RmaBundle::progress_main(sys::Shift& shift) {
    if (!main_.advance().is_ok()) shift.end();
    for_lanes([this](Lane& lane) { lane.note_announced(main_.announced(lane.number)); });
    return main_.has_moved();
}

void RmaBundle::collect() {
    for_lanes([this](Lane& lane) {
        for (const RmaCompletion& completion : lane.completions) end_part(completion);
        lane.completions.clear();
        if (!lane.failure.is_ok() && failed_ == nullptr) failed_ = &lane;
    });
    for (const RmaCompletion& completion : refused_) end_part(completion);
    refused_.clear();
}

void RmaBundle::end_part(const RmaCompletion& completion) {
    Part& part = parts_[completion.ticket - parts_over_];
    part.is_over = true;
    part.has_failed = !completion.status.is_ok();
    --part.lane->parts;
    part.lane->pieces -= part.load.pieces;
    part.lane->bytes -= part.load.bytes;
    bytes_under_way_ -= part.load.bytes;
    bytes_over_ += part.load.bytes;
    posts_.finish(*part.post, completion.status);
    for (; !parts_.empty() && parts_.front().is_over; parts_.pop_front()) {
        ++parts_over_;
        parts_failed_ += parts_.front().has_failed ? 1 : 0;
        held_.parts_over(parts_over_, parts_failed_);
    }
}

void RmaBundle::count_time(TimePoint begin) {
    const TimePoint now = system_clock().now();
    job_taken_ += now - begin;
    if (last_progress_ != TimePoint{}) job_taken_ += std::min(begin - last_progress_, kLongestGap);
    last_progress_ = now;
    std::uint64_t bytes = bytes_over_;
    for_lanes([&](const Lane& lane) { bytes += lane.link.bytes_begun(); });
    if (bytes - job_begin_ < kJob) return;
    const double jobs = static_cast<double>(bytes - job_begin_) / static_cast<double>(kJob);
    count_.record(kJob, std::chrono::duration_cast<Duration>(job_taken_ / jobs));
    job_begin_ = bytes;
    job_taken_ = {};
}

void RmaBundle::fail(const Status& why) {
    static_cast<void>(status_.set(why));
    if (main_.check().is_ok()) main_.abort(why);
    for_lanes([&](Lane& lane) {
        if (lane.link.check().is_ok()) lane.link.abort(why);
    });
}

void RmaBundle::end_lanes() {
    collect();
    for_lanes([](Lane& lane) {
        if (!lane.link.check().is_ok()) lane.link.fail_posts();
    });
    posts_.fail_all(status_.get());
    parts_.clear();
    held_.clear();
}

Status RmaBundle::look() {
    PCCL_TRY(check());
    PCCL_TRY(main_.look());
    return failed_ == nullptr ? Status::ok() : failed_->failure;
}

void RmaBundle::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    main_.abort(reason);
    for (const auto& entry : abortable_)
        if (Lane* const lane = entry.load()) lane->link.abort(reason);
}

}  // namespace pccl::transport
