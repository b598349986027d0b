// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/transaction.h"

#include <algorithm>
#include <cstddef>

#include "csrc/base/text/text.h"
#include "csrc/cluster/scatter.h"

namespace pccl::cluster {
namespace {

using Indices = std::vector<std::size_t>;
constexpr int kMostAttempts = 6;  // pauses of 50 ms to 0.8 s

/// Returns whether the switch may have performed the request.
bool leaves_doubt(const Status& status) {
    return status.code() == StatusCode::kTimeout || status.code() == StatusCode::kPeerLost;
}

/// Returns whether this session may hold the lock after kLock ended with this status: a later
/// operation of the step may have failed.
bool may_be_locked(const Status& status) { return status.code() != StatusCode::kUnavailable; }

std::vector<std::string> names_of(const std::vector<SwitchMember>& members) {
    std::vector<std::string> names;
    names.reserve(members.size());
    for (const SwitchMember& each : members) names.push_back(each.name);
    return names;
}

}  // namespace

class Transaction::Steps {
   public:
    Steps(std::vector<SwitchMember> members, SwitchOptions options)
        : members_(std::move(members)),
          options_(std::move(options)),
          begun_(options_.clock->now()),
          reporter_(options_.watch, names_of(members_)),
          states_(members_.size()) {
        report_.members.resize(members_.size());
        for (std::size_t i = 0; i < members_.size(); ++i) {
            report_.members[i].name = members_[i].name;
            everybody_.push_back(i);
        }
    }

    [[nodiscard]] bool is_dry_run() const { return options_.dry_run; }
    [[nodiscard]] bool is_over() const { return is_over_; }

    Status prepare() {
        reporter_.begin_part("prepare");
        PCCL_TRY(run_step(Step::kConnect, everybody_));
        for (const std::size_t i : everybody_)
            states_[i].commitment = members_[i].driver->commitment();
        PCCL_TRY(lock());
        PCCL_TRY(run_step(Step::kRead, everybody_));
        for (const std::size_t i : everybody_) PCCL_TRY(compare_with_origin(i));
        return run_step(Step::kPrepare, everybody_);
    }

    void begin_drain() { reporter_.begin_part("drain"); }

    Status drain() {
        if (!options_.drain) return Status::ok();
        begin_drain();
        return options_.drain();
    }

    Report commit() {
        if (const Status late = why_stop(); !late.is_ok()) return leave(late);
        const TimePoint dark = options_.clock->now();
        report_.reason = commit_and_prove();
        report_.dark = options_.clock->now() - dark;
        return close(report_.reason.is_ok() ? confirm() : roll_back());
    }

    Report leave(const Status& why) {
        report_.reason = why;
        return close(why.is_ok() ? Ending::kPrepared : Ending::kRefused);
    }

   private:
    struct MemberState {
        Commitment commitment = Commitment::kImmediate;  // as it was when it was connected
        bool is_locked = false;
        bool is_commit_requested = false;  // whether a commit was requested
        bool is_in_doubt = false;          // it may have done more than it has acknowledged
        bool is_confirmed = false;
    };

    /// Locks all. Reconnects if a session has ended since its last use, as no request was made yet.
    Status lock() {
        Status first = run_step(Step::kLock, everybody_);
        Indices lost;
        for (const std::size_t i : everybody_) {
            const Status& status = report_.members[i].status;
            states_[i].is_locked = may_be_locked(status);
            if (status.code() == StatusCode::kPeerLost) lost.push_back(i);
        }
        if (lost.empty()) return first;
        PCCL_TRY(run_step(Step::kConnect, lost));
        PCCL_TRY(run_step(Step::kLock, lost));
        for (const std::size_t i : lost)
            states_[i] = {.commitment = states_[i].commitment, .is_locked = true};
        return failure_of(everybody_);
    }

    Status compare_with_origin(std::size_t i) {
        const SwitchMember& member = members_[i];
        const Circuits& found = report_.members[i].found;
        if (found == member.from) return Status::ok();
        const Change change = change_between(member.from, found);
        return keep(i, {StatusCode::kMismatch,
                        concat("somebody else has changed it: it lacks ", to_string(change.remove),
                               " and has ", to_string(change.add), " besides")});
    }

    /// Commits and proves. Switches with rollback or with a checked candidate commit together; the
    /// others follow one after the other, because at most one of them is atomic with the rest.
    Status commit_and_prove() {
        reporter_.begin_part("commit");
        Indices careful;
        Indices immediate;
        for (const std::size_t i : everybody_)
            (states_[i].commitment == Commitment::kImmediate ? immediate : careful).push_back(i);
        PCCL_TRY(commit(careful));
        for (const std::size_t i : immediate) PCCL_TRY(commit({i}));
        PCCL_TRY(settle());
        PCCL_TRY(run_step(Step::kRead, everybody_));
        for (const std::size_t i : everybody_) PCCL_TRY(require(i, members_[i].to));
        PCCL_TRY(run_step(Step::kLight, everybody_));
        for (const std::size_t i : everybody_) PCCL_TRY(require_light(i));
        return Status::ok();
    }

    Status commit(const Indices& who) {
        for (const std::size_t i : who) states_[i].is_commit_requested = true;
        return run_step(Step::kCommit, who);
    }

    /// Waits for the slowest switch to settle.
    Status settle() {
        constexpr Duration kBetweenQuestions = std::chrono::milliseconds(100);
        Duration left{};
        for (const SwitchMember& member : members_) left = std::max(left, member.settle);
        if (left > Duration::zero()) reporter_.begin("settle", everybody_);
        for (; left > Duration::zero(); left -= kBetweenQuestions) {
            options_.clock->sleep_for(std::min(left, kBetweenQuestions));
            PCCL_TRY(why_stop());
        }
        return Status::ok();
    }

    Ending confirm() {
        reporter_.begin_part("confirm");
        may_be_interrupted_ = false;
        const Indices unsure = chosen(
            [](const MemberState& each) { return each.commitment == Commitment::kConfirmed; });
        report_.reason = run_step(Step::kConfirm, unsure);
        for (const std::size_t i : everybody_)
            states_[i].is_confirmed = report_.members[i].status.is_ok();
        if (report_.reason.is_ok()) return save(), Ending::kSwitched;
        const Indices failed = chosen([](const MemberState& each) { return !each.is_confirmed; });
        if (failed.size() == everybody_.size()) return roll_back();
        // When its session ends, the switch reverts the commit unless it has confirmed it.
        for (const std::size_t i : failed) give_up(i, report_.members[i].status);
        await_timers(failed);
        if (!settle_on(failed, &SwitchMember::to)) return degraded();
        save();
        return Ending::kSwitched;
    }

    /// Saves the circuits, so that they survive a restart of the switch. A failure does not affect
    /// the switched circuits; it is in the report.
    void save() {
        Indices saving;
        for (const std::size_t i : everybody_) {
            if (!members_[i].driver->has_startup()) continue;
            report_.members[i].startup = "not copied";
            if (members_[i].copies_to_startup) saving.push_back(i);
        }
        const std::vector<Status> before = statuses();
        static_cast<void>(run_step(Step::kSave, saving));
        for (const std::size_t i : saving) {
            Status& status = report_.members[i].status;
            report_.members[i].startup = status.is_ok() ? "copied" : status.message();
            status = before[i];
        }
    }

    Ending roll_back() {
        reporter_.begin_part("roll back");
        may_be_interrupted_ = false;
        const Indices changed =
            chosen([](const MemberState& each) { return each.is_commit_requested; });
        Indices reachable;
        Indices doubtful;
        for (const std::size_t i : changed)
            (states_[i].is_in_doubt ? doubtful : reachable).push_back(i);
        // The replies are ignored: the reading decides.
        const Status cause = report_.reason;
        static_cast<void>(run_step(Step::kCancel, reachable));
        doubtful = chosen(
            [](const MemberState& each) { return each.is_commit_requested && each.is_in_doubt; });
        await_timers(doubtful);
        const bool is_back = settle_on(changed, &SwitchMember::from);
        report_.reason = cause;
        return is_back ? Ending::kRolledBack : degraded();
    }

    /// Waits without requests: the timers of some servers run only while there are none.
    void await_timers(const Indices& who) {
        std::chrono::seconds longest{0};
        for (const std::size_t i : who)
            if (states_[i].commitment == Commitment::kConfirmed)
                longest = std::max(longest, members_[i].confirm_timeout);
        if (longest.count() == 0) return;
        reporter_.begin("wait", who);
        options_.clock->sleep_for(longest + std::chrono::seconds(1));
    }

    /// Returns whether each switch is proven to have these circuits; rewrites the circuits where
    /// they differ.
    bool settle_on(const Indices& who, Circuits SwitchMember::*wanted) {
        bool is_proven = true;
        for (const std::size_t i : who) {
            const Status settled = settle_one(i, members_[i].*wanted);
            report_.members[i].status = settled;
            is_proven = is_proven && settled.is_ok();
        }
        return is_proven;
    }

    Status settle_one(std::size_t i, const Circuits& wanted) {
        const Indices one = {i};
        if (states_[i].is_in_doubt) PCCL_TRY(reach(i));
        PCCL_TRY(run_step(Step::kRead, one));
        const Circuits& found = report_.members[i].found;
        if (found == wanted) return Status::ok();
        if (!is_between(found, members_[i].from, members_[i].to)) return require(i, wanted);
        PCCL_TRY(run_step(Step::kWrite, one, &wanted));
        PCCL_TRY(run_step(Step::kRead, one));
        return require(i, wanted);
    }

    /// Reconnects and locks, with several attempts: a server may restart, or still hold the locks
    /// of the lost session.
    Status reach(std::size_t i) {
        Duration pause = std::chrono::milliseconds(50);
        Status status;
        for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
            if (attempt > 0) options_.clock->sleep_for(pause);
            pause *= 2;
            status = run_step(Step::kConnect, {i});
            if (status.is_ok()) status = run_step(Step::kLock, {i});
            states_[i].is_in_doubt = false;
            states_[i].is_locked = may_be_locked(status);
            if (status.is_ok()) return status;
        }
        return report_.members[i].status;
    }

    Status require(std::size_t i, const Circuits& wanted) {
        const Circuits& found = report_.members[i].found;
        if (found == wanted) return Status::ok();
        const Change change = change_between(wanted, found);
        return keep(i, Status::unavailable(concat("it shows ", to_string(change.add), " where ",
                                                  to_string(change.remove), " should be")));
    }

    Status require_light(std::size_t i) {
        const std::vector<int>& dark = members_[i].driver->dark();
        for (const Circuit& each : members_[i].to)
            if (std::ranges::binary_search(dark, each.ingress))
                return keep(i,
                            Status::unavailable(concat("no light comes in at port ", each.ingress,
                                                       ", which is to go out at ", each.egress)));
        return Status::ok();
    }

    Ending degraded() {
        std::string who;
        for (const MemberReport& each : report_.members)
            if (!each.status.is_ok())
                who += concat(who.empty() ? "" : "; ", "switch ", each.name, ": ",
                              each.status.message());
        report_.reason = Status::unavailable(
            concat("degraded, as ", report_.reason.message(), "; unproven is ", who,
                   "; look at what is named here, then adopt what the switches show"));
        return Ending::kDegraded;
    }

    Report close(Ending ending) {
        release();
        is_over_ = true;
        report_.ending = ending;
        if (ending == Ending::kSwitched) report_.reason = Status::ok();
        report_.total = options_.clock->now() - begun_;
        for (const std::size_t i : everybody_) {
            report_.members[i].exchanges = members_[i].driver->take_exchanges();
            report_.members[i].discarded = members_[i].driver->take_discarded();
        }
        return std::move(report_);
    }

    /// Releases the switches; errors do not affect the transaction's result.
    void release() {
        may_be_interrupted_ = false;
        reporter_.begin_part("release");
        const Indices locked = chosen([](const MemberState& each) { return each.is_locked; });
        const std::vector<Status> before = statuses();
        static_cast<void>(run_step(Step::kRelease, locked));
        for (const std::size_t i : everybody_) {
            Status& status = report_.members[i].status;
            // The end of a session also releases its locks.
            if (!status.is_ok() && states_[i].is_locked) members_[i].driver->abandon(status);
            status = before[i];
        }
    }

    [[nodiscard]] std::vector<Status> statuses() const {
        std::vector<Status> all;
        all.reserve(report_.members.size());
        for (const MemberReport& each : report_.members) all.push_back(each.status);
        return all;
    }

    template <typename Predicate>
    [[nodiscard]] Indices chosen(const Predicate& is_wanted) const {
        Indices found;
        std::copy_if(everybody_.begin(), everybody_.end(), std::back_inserter(found),
                     [&](std::size_t i) { return is_wanted(states_[i]); });
        return found;
    }

    /// Returns the first failure, with the name of its switch. `to`: circuits in place of the
    /// members'.
    Status run_step(Step step, const Indices& who, const Circuits* to = nullptr) {
        if (who.empty()) return Status::ok();
        std::vector<SwitchTask> parts;
        for (const std::size_t i : who) {
            const SwitchMember& member = members_[i];
            parts.push_back({.driver = member.driver,
                             .intent = {.from = member.from,
                                        .to = to == nullptr ? member.to : *to,
                                        .confirm_timeout = member.confirm_timeout,
                                        .is_of_phase = member.is_of_phase,
                                        .discards_candidate = may_discard(i)},
                             .status = Status::ok()});
        }
        reporter_.begin(to_string(step), who);
        const Status interruption =
            scatter(step, parts, step_timeout(),
                    {.ended = [&](std::size_t k) { reporter_.end(who[k], parts[k].status); },
                     .interrupted = changes_nothing(step) ? options_.interrupted : nullptr});
        for (std::size_t k = 0; k < who.size(); ++k) take_in(step, who[k], parts[k]);
        PCCL_TRY(interruption);
        PCCL_TRY(failure_of(who));
        return why_stop();
    }

    /// Returns whether the step may be aborted at any time, by closing the session.
    [[nodiscard]] bool changes_nothing(Step step) const {
        const auto has_commit = [](const MemberState& each) { return each.is_commit_requested; };
        return may_be_interrupted_ && step != Step::kPrepare &&
               std::ranges::none_of(states_, has_commit);
    }

    /// Returns whether kLock may discard the candidate. After a requested commit its content
    /// belongs to this transaction, which had the lock.
    [[nodiscard]] bool may_discard(std::size_t i) const {
        return options_.discard_candidate || states_[i].is_commit_requested;
    }

    [[nodiscard]] Duration step_timeout() const {
        if (!may_be_interrupted_) return options_.step_timeout;
        return std::min(options_.step_timeout, options_.deadline.remaining());
    }

    [[nodiscard]] Status why_stop() const {
        if (!may_be_interrupted_) return Status::ok();
        if (options_.deadline.passed())
            return Status::timeout("the deadline of the switch has passed");
        return options_.interrupted ? options_.interrupted() : Status::ok();
    }

    void take_in(Step step, std::size_t i, const SwitchTask& part) {
        MemberReport& report = report_.members[i];
        report.steps.push_back({step, part.took});
        report.status = part.status;
        if (leaves_doubt(part.status)) states_[i].is_in_doubt = true;
        if (step == Step::kRead && part.status.is_ok()) report.found = part.driver->circuits();
    }

    [[nodiscard]] Status failure_of(const Indices& who) const {
        for (const std::size_t i : who)
            if (!report_.members[i].status.is_ok())
                return report_.members[i].status.with_context(concat("switch ", members_[i].name));
        return Status::ok();
    }

    /// Stores the member's status; returns it with the switch's name.
    Status keep(std::size_t i, const Status& status) {
        report_.members[i].status = status;
        reporter_.end(i, status);
        return status.with_context(concat("switch ", members_[i].name));
    }

    void give_up(std::size_t i, const Status& why) {
        members_[i].driver->abandon(why);
        states_[i].is_in_doubt = true;
    }

    const std::vector<SwitchMember> members_;
    const SwitchOptions options_;
    const TimePoint begun_;
    ProgressReporter reporter_;
    std::vector<MemberState> states_;
    Indices everybody_;
    Report report_;
    bool may_be_interrupted_ = true;  // false while the transaction is being ended
    bool is_over_ = false;
};

Transaction::Transaction(std::vector<SwitchMember> members, SwitchOptions options)
    : steps_(std::make_unique<Steps>(std::move(members), std::move(options))) {}

Transaction::~Transaction() {
    if (!steps_->is_over()) static_cast<void>(leave(Status::aborted("it was given up")));
}

Report Transaction::run() {
    Status why = prepare();
    if (why.is_ok() && !steps_->is_dry_run()) {
        why = steps_->drain();
        if (why.is_ok()) return commit();
    }
    return leave(why);
}

Status Transaction::prepare() { return steps_->prepare(); }

void Transaction::begin_drain() { steps_->begin_drain(); }

Report Transaction::commit() { return steps_->commit(); }

Report Transaction::leave(const Status& why) { return steps_->leave(why); }

}  // namespace pccl::cluster
