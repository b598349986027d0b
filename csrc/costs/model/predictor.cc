// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/model/predictor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/collective/arithmetic/accumulator.h"
#include "csrc/costs/model/layout_catalogue.h"

namespace pccl::costs {

using schedule::ScheduleSource;
using schedule::SourcePtr;

namespace {

// Overhead of a call for its checks, lock and cut, independent of the algorithm: with numpy, on a
// core of about 3 GHz.
constexpr double kCallSeconds = 0.6e-6;

/// Returns the ratio of the bytes on the longest chain of dependent messages to the bytes that the
/// busiest rank sends. It exceeds 1 for trees, whose ranks send in fewer than all rounds. Only the
/// first window waits for the whole chain.
double chain_over_load(const schedule::Cost& cost, std::size_t windows) {
    if (cost.messages == 0) return 1;
    const double rounds = static_cast<double>(cost.rounds) / static_cast<double>(cost.messages);
    return 1 + std::max(rounds - 1, 0.0) / static_cast<double>(windows);
}

/// Counts a message for each round: in a round in which a rank sends nothing, it waits for messages
/// of others.
schedule::Cost with_all_on_chain(schedule::Cost cost) {
    cost.messages = std::max(cost.messages, cost.rounds);
    return cost;
}

/// Returns how often a rank copies a byte of its block into or out of links, if the busiest rank
/// sends it `sent` times. Over sockets the kernel's part at either end is the rank's own time, too.
/// From a root each other rank gets a byte once, and an inner rank forwards it. Ranks that share a
/// core have no more work than all copies together.
double ends_of_links(CollectiveKind kind, double sent, int ranks, double turns) {
    if (!schedule::is_rooted(kind)) return 2 * sent;
    const double in_the_midst = std::min(ranks - 1, 2);
    const double of_all = 2.0 * (ranks - 1) / ranks;
    return std::max(std::max(sent, in_the_midst) / turns, of_all);
}

// Extra load of a root that sends window after window to several ranks over sockets, as if it sent
// this much more. Two messages took it longer than one that it receives and one that it sends; many
// took as long as their number suggests.
constexpr double kToSeveral = 0.4;

/// Returns the factor on one end of a message of the busiest rank, when ranks share cores. From a
/// root each other rank gets a message, and all ranks share the cores at both ends of all messages.
double in_a_crowd(long long messages, int ranks, double turns) {
    const double of_all = 2 * turns * (ranks - 1) / ranks;
    return std::max(1.0, of_all / static_cast<double>(std::max(messages, 1LL)));
}

// Calls whose lengths differ by at most 6 % use equal algorithms.
constexpr int kBitsThatCount = 5;
// Maximum number of cached predictions for calls that differ by more; each takes one or two
// kilobytes.
constexpr std::size_t kMostWaysKept = 256;

/// Returns a representative of all similar calls. For uneven lengths predictions only depend on
/// whether they are uneven.
Signature about(Signature call) {
    const int spared = std::max(static_cast<int>(std::bit_width(call.count)) - kBitsThatCount, 0);
    call.count = call.count >> spared << spared;
    call.digest = call.digest == 0 ? 0 : 1;
    return call;
}

}  // namespace

Predictor::Predictor(Setting setting, std::shared_ptr<const schedule::Catalogue> catalogue,
                     const MachineCosts& costs)
    : ranks_(setting.reach.ranks),
      segment_(setting.segment),
      layout_(std::move(setting.layout)),
      shares_a_host_(layout_->links() == nullptr || layout_->is_on_one_host()),
      costs_(costs),
      turns_(setting.reach.ranks_on_core),
      links_(link_model(setting.reach, *layout_, costs_)),
      known_(catalogue_for(std::move(catalogue), *layout_)),
      catalogue_(known_) {}

void Predictor::choose_from(std::shared_ptr<const schedule::Catalogue> catalogue) {
    known_ = catalogue_for(std::move(catalogue), *layout_);
    restrict_to(followed_);
}

void Predictor::restrict_to(std::shared_ptr<const schedule::LinkGraph> links) {
    followed_ = std::move(links);
    catalogue_ = followed_ == nullptr ? known_ : catalogue_along(*followed_, *known_, *layout_);
    traffic_.clear();
    ways_.clear();
}

std::vector<Prediction> Predictor::predict(const Signature& call, std::string_view wanted) {
    std::vector<Prediction> ways;
    if (segment_ && followed_ == nullptr) ways = shm_predictions(*segment_, shm_call(call), costs_);
    for (const SourcePtr& source : catalogue_->of(call.kind)) {
        if (!suits(*source, call, wanted)) continue;
        if (auto way = best_shape(source, call)) ways.push_back(*std::move(way));
    }
    for (Prediction& way : ways) way.seconds += turns_ * kCallSeconds;
    std::ranges::stable_sort(ways, {}, &Prediction::seconds);
    return ways;
}

const std::vector<Prediction>& Predictor::predict_about(const Signature& call,
                                                        std::string_view wanted) {
    CallKey requested(about(call), wanted);
    if (const auto known = ways_.find(requested); known != ways_.end()) return known->second;
    if (ways_.size() >= kMostWaysKept) ways_.clear();
    std::vector<Prediction> ways = predict(requested.first, wanted);
    return ways_.emplace(std::move(requested), std::move(ways)).first->second;
}

bool Predictor::suits(const ScheduleSource& source, const Signature& call,
                      std::string_view wanted) const {
    // Requesting a schedule implies that all blocks have one length.
    const bool may_be_uneven = call.is_of_pairs ? wanted != source.name : call.digest != 0;
    if (may_be_uneven && !source.takes_uneven) return false;
    return schedule::check_shape(source, shape_for(source, call.root, 0)).is_ok();
}

bool Predictor::fits(const ScheduleSource& source, const Signature& call,
                     std::string_view wanted) const {
    return suits(source, call, wanted) &&
           most_in_chunk(source, shape_for(source, call.root, 0), link_element_bytes(call)) > 0;
}

std::optional<Prediction> Predictor::best_shape(const SourcePtr& source, const Signature& call) {
    // The choice must not depend on the root of the first call.
    const Rank root = source->only ? call.root : Rank{0};
    std::optional<Prediction> best = over_links(source, shape_for(*source, root, 0), call);
    for (int aggregation = 1; source->aggregates && aggregation < ranks_; aggregation *= 2) {
        const auto other = over_links(source, shape_for(*source, root, aggregation), call);
        if (other && (!best || other->seconds < best->seconds)) best = other;
    }
    return best;
}

std::optional<Prediction> Predictor::over_links(const SourcePtr& source,
                                                const schedule::Shape& shape,
                                                const Signature& call) {
    const std::size_t most = most_in_chunk(*source, shape, link_element_bytes(call));
    if (most == 0) return std::nullopt;
    const Course course =
        course_of(*source, shape, call, most * static_cast<std::size_t>(shape.chunks));
    Prediction made{
        .source = source, .aggregation = shape.aggregation, .messages = course.cost.messages};
    // With a root, the longest chain counts if ranks share cores; otherwise the maximum of that and
    // the messages of the busiest rank.
    if (course.is_from_root && (turns_ > 1 || course.cost.rounds > made.messages))
        made.messages = course.cost.rounds;
    // On one host the messages of all windows distinguish algorithms of equal time; between hosts a
    // window is in flight while another waits.
    if (!shares_a_host_ && !course.goes_on) made.messages /= static_cast<long long>(course.windows);
    const Traffic* const crossed =
        layout_->links() == nullptr ? nullptr : &traffic_of(source, shape);
    if (crossed != nullptr) made.busiest = crossed->busiest_name;
    made.seconds = shares_a_host_ ? on_one_host(course, crossed) : between_hosts(course, *crossed);
    return made;
}

Predictor::Course Predictor::course_of(const ScheduleSource& source, const schedule::Shape& shape,
                                       const Signature& call, std::size_t window) const {
    const std::size_t element_bytes = link_element_bytes(call);
    const auto length = static_cast<double>(call.count * element_bytes);
    Course course{.source = source,
                  .call = {call.kind, element_bytes, call.count},
                  .length = length,
                  .windows = std::max<std::size_t>((call.count + window - 1) / window, 1)};
    const bool is_rooted = schedule::is_rooted(call.kind);
    course.is_from_root = is_rooted && (!links_.near.copies || !shares_a_host_);
    // Over sockets a root starts the next window while the others are still busy with one.
    course.goes_on = course.is_from_root && !source.holds_calls_up;
    course.cost = in_windows(source.cost(shape, length),
                             course.goes_on ? 1 : static_cast<long long>(course.windows));
    course.longest_bytes = length * (is_rooted ? 1 : chain_over_load(course.cost, course.windows));
    return course;
}

double Predictor::on_one_host(const Course& course, const Traffic* crossed) const {
    const bool is_by_itself = course.is_from_root && turns_ == 1;
    double sent = course.length > 0 ? course.cost.bytes_sent / course.length : 0;
    if (is_by_itself && course.goes_on && sent > 1)
        sent += kToSeveral * (1 - 1 / static_cast<double>(course.windows));
    Traffic near;
    if (course.length > 0) near.seconds_per_byte = near_byte(course.call, sent, course.windows);
    if (crossed != nullptr) near.busiest = crossed->busiest;
    const schedule::Cost cost =
        schedule::is_rooted(course.call.kind) ? course.cost : with_all_on_chain(course.cost);
    const double moving =
        is_by_itself ? seconds_with_root(rooted(course), links_, near)
                     : seconds_over_links(model_for(course), cost, near, course.longest_bytes);
    return moving + turns_ * keeping(course.call, level_of(course.call, ranks_, costs_), costs_);
}

/// Predicts the time between hosts. The wait for a shared core is the time of other ranks' copies,
/// which are included already: only one window adds to it.
double Predictor::between_hosts(const Course& course, const Traffic& traffic) const {
    if (course.is_from_root) return seconds_with_root(rooted(course), links_, traffic);
    schedule::Cost cost = course.cost;
    if (shares_cores()) cost.rounds /= static_cast<long long>(course.windows);
    return seconds_over_links(links_, cost, traffic, course.longest_bytes);
}

RootedCall Predictor::rooted(const Course& course) const {
    return {.ranks = ranks_,
            .length = course.length,
            .windows = static_cast<double>(course.windows),
            .cost = course.cost,
            .goes_on = course.goes_on};
}

/// Adapts the link model to a call. In a tree one of two children waits for the other, unless there
/// are only two ranks. A root that calls repeatedly has as many calls in flight as fit into the
/// rings, and ranks do their rounds concurrently. Over sockets a message costs its root one end of
/// it. When ranks share cores, a forwarding rank runs only after the others have run.
LinkModel Predictor::model_for(const Course& course) const {
    constexpr double kMostAhead = 8;
    LinkModel model = links_;
    LinkCost& near = model.near;
    if (!schedule::is_rooted(course.call.kind)) {
        if (course.source.holds_calls_up && ranks_ > 2) near = with_two_children(near);
        return model;
    }
    if (!near.copies && turns_ > 1)
        near.message_seconds *= in_a_crowd(course.cost.messages, ranks_, turns_) / turns_;
    if (course.source.holds_calls_up) {
        near = with_two_children(near);
    } else if (near.copies) {
        const double calls = static_cast<double>(links_.capacity) / std::max(course.length, 1.0);
        near.round_seconds /= std::sqrt(std::clamp(calls, 1.0, kMostAhead));
    } else {
        near.message_seconds = std::min(near.message_seconds, near.round_seconds);
    }
    return model;
}

/// Returns seconds a byte. With a root and two ranks, each rank copies at one end of a ring, and
/// all windows but the first are written while earlier ones are read.
double Predictor::near_byte(const ShmCall& call, double sent, std::size_t windows) const {
    if (!links_.near.copies)
        return links_.near.seconds_per_byte * ends_of_links(call.kind, sent, ranks_, turns_);
    const double ends = ends_of_links(call.kind, sent, ranks_, 1);  // each rank waits for its core
    const Level of_rings = level_of_rings(links_.capacity, costs_);
    const Level level = std::max(level_of(call, ranks_, costs_), of_rings);
    const CoreTransfer transfer = core_transfer_at(level, costs_);
    // Ratio of the cost measured by `pccl topo --measure` to the cost by this machine's figures.
    const double slower =
        2 * links_.near.seconds_per_byte / core_transfer_at(of_rings, costs_).both();
    if (ranks_ > 2 || !schedule::is_rooted(call.kind)) return ends * slower * transfer.both() / 2;
    const auto [less, more] = std::minmax(transfer.give, transfer.take);
    return sent * slower * (more + less / static_cast<double>(windows));
}

const Traffic& Predictor::traffic_of(const SourcePtr& source, const schedule::Shape& shape) {
    const auto [known, is_new] = traffic_.try_emplace({source, shape});
    if (is_new)
        known->second = traffic(*source, shape, links_, *layout_->links(), layout_->order());
    return known->second;
}

std::string Predictor::why_not(const Signature& call, std::string_view wanted) const {
    const SourcePtr source = catalogue_->find(wanted, call.kind);
    if (source == nullptr) return {};
    if (call.digest != 0 && !source->takes_uneven) return " of blocks that differ in length";
    const schedule::Shape shape = shape_for(*source, call.root, 0);
    const Status fits = schedule::check_shape(*source, shape);
    if (!fits.is_ok()) return concat(" (", fits.message(), ")");
    if (most_in_chunk(*source, shape, link_element_bytes(call)) > 0) return {};
    return concat(" of ", ranks_, " ranks: its longest message is more than the ", links_.capacity,
                  " bytes that a link holds");
}

schedule::Shape Predictor::shape_for(const ScheduleSource& source, Rank root,
                                     int aggregation) const {
    schedule::Shape shape = schedule::least_shape(source, ranks_, root);
    if (source.runs_side_by_side) shape.chunks *= layout_->ring_count();
    shape.aggregation = aggregation;
    return shape;
}

std::size_t Predictor::most_in_chunk(const ScheduleSource& source, const schedule::Shape& shape,
                                     std::size_t element_bytes) const {
    const std::size_t message =
        links_.capacity / static_cast<std::size_t>(shape.slots) - sizeof(abi::CollectiveHeader);
    return message / static_cast<std::size_t>(source.longest_message(shape)) / element_bytes;
}

std::size_t Predictor::link_element_bytes(const Signature& call) const {
    if (!reduces(call.kind)) return size_of(call.type);
    return arithmetic::Accumulator(call.type, call.op, ranks_).element_bytes();
}

}  // namespace pccl::costs
