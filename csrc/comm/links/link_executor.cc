// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/links/link_executor.h"

#include <algorithm>

#include "csrc/collective/arithmetic/arithmetic.h"

namespace pccl::comm {

using schedule::Action;

void LinkExecutor::start(std::shared_ptr<const LinkProgram> program, const Cut& cut,
                         const abi::CollectiveHeader& header, const Collective& collective,
                         const arithmetic::Accumulator& accumulator) {
    program_ = std::move(program);
    cut_ = cut;
    header_ = header;
    collective_ = &collective;
    const bool reduces = schedule::reduces(collective.kind);
    element_bytes_ = reduces ? accumulator.element_bytes() : size_of(collective.type);
    combine_ = reduces ? accumulator.combine() : nullptr;
    is_timed_ = timeline_.is_on();
    if (is_timed_) clock_.refresh();
    const std::size_t count = longest(collective);
    const std::size_t windows = cut_.rounds(count);
    is_windowed_ = windows > 1;
    rounds_ = windows > strand_ ? (windows - strand_ - 1) / cut_.strands + 1 : 0;
    scratch_count_ = collective.outputs.size() == 1 ? collective.outputs.front().count : count;
    // If blocks differ in length, each scratch chunk has room for a chunk of the longest one.
    scratch_stride_ = std::min(cut_.piece_length(), cut_.chunk_length(count)) * element_bytes_;
    scratch_bytes_ = static_cast<std::size_t>(program_->scratch_chunks) * scratch_stride_;
    const std::size_t scratches = std::min(rounds_, kScratches);
    if (scratch_.size() < scratches * scratch_bytes_) scratch_.resize(scratches * scratch_bytes_);
    windows_at_once_ = program_->has_a_link_for_each_step
                           ? std::min(cut_.windows_at_once, std::max<std::size_t>(rounds_, 1))
                           : 1;
    lanes_.resize(program_->lanes.size() * windows_at_once_);
    send_ports_.assign(program_->send_ports.size(), {});
    receive_ports_.assign(program_->receive_ports.size(), {});
    window_round_ = lanes_through_ = lanes_done_ = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        LaneCursor& lane = lanes_[i];
        lane.round = i % windows_at_once_;
        lane.step = 0;
        lane.entered = false;
        lane.done = rounds_ == 0 || steps_of(i).empty();
        lanes_done_ += lane.done ? 1 : 0;
    }
    lanes_through_ = lanes_done_ / windows_at_once_;
}

Result<bool> LinkExecutor::progress(bool& moved) {
    do {
        others_first_ = false;
        for (std::size_t i = 0; i < lanes_.size(); ++i)
            if (!lanes_[i].done) PCCL_TRY(progress_lane(lanes_[i], i, moved));
    } while (others_first_);
    if (lanes_done_ < lanes_.size()) return false;
    return flush_links();
}

Result<bool> LinkExecutor::flush_links() {
    bool all = true;
    for (std::size_t i = 0; i < send_ports_.size(); ++i) {
        if (send_ports_[i].link == nullptr) continue;
        PCCL_ASSIGN_OR_RETURN(const bool empty,
                              send_ports_[i].link->flush(transport::kCollectiveChannel));
        all &= empty;
    }
    return all;
}

Status LinkExecutor::progress_lane(LaneCursor& lane, std::size_t index, bool& moved) {
    TimePoint ended{};
    while (!lane.done) {
        if (program_->scratch_chunks > 0 && lane.round >= window_round_ + kScratches)
            return Status::ok();
        const LinkStep& step = steps_of(index)[lane.step];
        if (!lane.entered) {
            if (!may_run(lane, index)) return Status::ok();
            begin_step(lane, step);
        }
        PCCL_ASSIGN_OR_RETURN(const bool complete, is_timed_
                                                       ? progress_timed(lane, step, ended, moved)
                                                       : progress_step(lane, step, moved));
        if (!complete) return Status::ok();
        moved = true;
        next_step(lane, index);
        // Another lane may have to send the received data: that has precedence over a poll for
        // more.
        if (step.from != kNoPort && lanes_.size() > 1 && looks_for_more(lane, index)) {
            others_first_ = true;
            return Status::ok();
        }
    }
    return Status::ok();
}

void LinkExecutor::begin_step(LaneCursor& lane, const LinkStep& step) {
    lane.entered = true;
    lane.begun = lane.moved = {};
    lane.received = lane.sent = lane.carried = 0;
    lane.read = lane.written = lane.outgoing = {};
    lane.total = length(step, lane.round);
    if (step.action == Action::kRecvReduceSend && lane.unstored.size() < lane.total)
        lane.unstored.resize(lane.total);
}

void LinkExecutor::next_step(LaneCursor& lane, std::size_t index) {
    lane.entered = false;
    if (++lane.step < steps_of(index).size()) return;
    if (lane.round == window_round_) ++lanes_through_;
    lane.step = 0;
    lane.round += windows_at_once_;
    lane.done = lane.round >= rounds_;
    lanes_done_ += lane.done ? 1 : 0;
    if (lanes_through_ < program_->lanes.size()) return;
    ++window_round_;
    lanes_through_ = 0;
    for (std::size_t i = window_round_ % windows_at_once_; i < lanes_.size(); i += windows_at_once_)
        lanes_through_ += steps_of(i).empty() || lanes_[i].round > window_round_ ? 1 : 0;
}

bool LinkExecutor::looks_for_more(const LaneCursor& lane, std::size_t index) const {
    return !lane.done && steps_of(index)[lane.step].from != kNoPort;
}

bool LinkExecutor::may_run(const LaneCursor& lane, std::size_t index) const {
    const LinkStep& step = steps_of(index)[lane.step];
    const schedule::Dependency same{static_cast<int>(index / windows_at_once_),
                                    static_cast<int>(lane.step)};
    if (windows_at_once_ > 1 && lane.round > 0 && !is_past(same, lane.round - 1)) return false;
    return std::all_of(step.after.begin(), step.after.end(),
                       [&](const auto& dependency) { return is_past(dependency, lane.round); });
}

bool LinkExecutor::is_past(const schedule::Dependency& dependency, std::size_t round) const {
    const std::size_t first = static_cast<std::size_t>(dependency.lane) * windows_at_once_;
    const LaneCursor& other = lanes_[first + round % windows_at_once_];
    if (other.done || other.round > round) return true;
    return other.round == round && other.step > static_cast<std::size_t>(dependency.step);
}

Result<bool> LinkExecutor::progress_step(LaneCursor& lane, const LinkStep& step, bool& moved) {
    switch (step.action) {
        case Action::kNop:
            return true;
        case Action::kCopy:
            copy(step, lane.round);
            return true;
        case Action::kReduce:
            reduce(step, lane.round);
            return true;
        case Action::kSwitchPhase:
            return Status::unsupported("a program that switches phases runs in its parts alone");
        default:
            break;
    }
    if (step.from != kNoPort && lane.received < lane.total) PCCL_TRY(receive(lane, step, moved));
    if (step.to != kNoPort && lane.sent < lane.total) PCCL_TRY(send(lane, step, moved));
    const bool all_in = step.from == kNoPort || lane.received == lane.total;
    const bool all_out = step.to == kNoPort || lane.sent == lane.total;
    return all_in && all_out;
}

Result<bool> LinkExecutor::progress_timed(LaneCursor& lane, const LinkStep& step, TimePoint& ended,
                                          bool& moved) {
    const TimePoint before = ended == TimePoint{} ? clock_.now() : ended;
    if (lane.begun == TimePoint{}) lane.begun = before;
    PCCL_ASSIGN_OR_RETURN(const bool complete, progress_step(lane, step, moved));
    if (lane.moved == TimePoint{} && (complete || lane.received + lane.sent > 0))
        lane.moved = before;
    if (!complete) return false;
    ended = clock_.now();
    timeline_.add(timed(lane, step, ended));
    return true;
}

TimedStep LinkExecutor::timed(const LaneCursor& lane, const LinkStep& step, TimePoint end) const {
    const auto port_at = [](const std::vector<schedule::PeerPort>& ports, int index) {
        return index == kNoPort ? schedule::PeerPort{} : ports[static_cast<std::size_t>(index)];
    };
    return {.begin = lane.begun,
            .moved = lane.moved,
            .end = end,
            .sequence = header_.sequence,
            .window = static_cast<std::uint32_t>(window_of(lane.round)),
            .lane = static_cast<std::int32_t>(static_cast<std::size_t>(&lane - lanes_.data()) /
                                              windows_at_once_),
            .step = static_cast<std::int32_t>(lane.step),
            .action = step.action,
            .from = port_at(program_->receive_ports, step.from),
            .to = port_at(program_->send_ports, step.to),
            .bytes = lane.total};
}

bool LinkExecutor::is_flushed() const {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        const LaneCursor& lane = lanes_[i];
        if (lane.done) continue;
        const auto& steps = steps_of(i);
        const std::size_t from = lane.round + windows_at_once_ < rounds_ ? 0 : lane.step;
        const bool sends =
            std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(from), steps.end(),
                        [](const LinkStep& step) { return step.to != kNoPort; });
        if (sends) return false;
    }
    return true;
}

AwaitedRanks LinkExecutor::awaited() const {
    AwaitedRanks ranks;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        const LaneCursor& lane = lanes_[i];
        if (lane.done || !lane.entered) continue;
        const LinkStep& step = steps_of(i)[lane.step];
        if (step.from != kNoPort && lane.received < lane.total)
            ranks.push_back({program_->receive_ports[static_cast<std::size_t>(step.from)].peer});
        else if (step.to != kNoPort && lane.sent < lane.total)
            ranks.push_back({program_->send_ports[static_cast<std::size_t>(step.to)].peer,
                             Awaited::Act::kReceive});
    }
    return ranks;
}

}  // namespace pccl::comm
