// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/emulated/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/collective/arithmetic_reference.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;

constexpr std::byte kPoison{93};

// Whole numbers, whose sums over 8 ranks every type here has exactly. They repeat after kPeriod.
constexpr std::size_t kPeriod = 11;
double value(Rank rank, std::size_t index) {
    return static_cast<double>((index * 7 + static_cast<std::size_t>(rank) * 13) % kPeriod);
}

void write(DataType type, std::byte* to, double number) {
    const auto put = [to](auto typed) { std::memcpy(to, &typed, sizeof typed); };
    switch (type) {
        case DataType::kUint8:
            return put(static_cast<std::uint8_t>(number));
        case DataType::kBfloat16:
            return put(arithmetic::reference::encode(arithmetic::reference::kBfloat16, number));
        case DataType::kFloat16:
            return put(arithmetic::reference::encode(arithmetic::reference::kFloat16, number));
        case DataType::kFloat32:
            return put(static_cast<float>(number));
        default:
            return put(static_cast<std::int32_t>(number));
    }
}

/// What a block holds whose elements repeat after kPeriod: they are encoded once.
class Pattern {
   public:
    template <typename ElementAt>
    Pattern(DataType type, ElementAt element_at) : size_(size_of(type)) {
        for (std::size_t i = 0; i < kPeriod; ++i) write(type, &bytes_[i * size_], element_at(i));
    }

    void fill(const Block& block) const {
        for_each_period(block, [this](std::byte* at, std::size_t bytes) {
            std::memcpy(at, bytes_.data(), bytes);
        });
    }

    [[nodiscard]] std::size_t differences(const Block& block) const {
        std::size_t found = 0;
        for_each_period(block, [&](const std::byte* at, std::size_t bytes) {
            if (std::memcmp(at, bytes_.data(), bytes) == 0) return;
            for (std::size_t i = 0; i < bytes; i += size_)
                if (std::memcmp(at + i, &bytes_[i], size_) != 0) ++found;
        });
        return found;
    }

   private:
    template <typename Visit>
    void for_each_period(const Block& block, Visit visit) const {
        const std::size_t end = block.count * size_;
        const std::size_t period = kPeriod * size_;
        for (std::size_t at = 0; at < end; at += period)
            visit(block.data + at, std::min(period, end - at));
    }

    std::size_t size_;
    std::array<std::byte, kPeriod * 8> bytes_{};
};

bool is_one_of(CollectiveKind kind, std::initializer_list<CollectiveKind> kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
}

/// How many blocks a rank has on one side.
struct Sides {
    std::size_t inputs;
    std::size_t outputs;
};
Sides sides_of(const Case& of, Rank rank, int ranks) {
    const auto all = static_cast<std::size_t>(ranks);
    Sides sides{is_one_of(of.kind, {kReduceScatter, kAllToAll, kScatter}) ? all : 1,
                is_one_of(of.kind, {kAllGather, kAllToAll, kGather}) ? all : 1};
    if (rank == of.root) return sides;
    if (is_one_of(of.kind, {kBroadcast, kScatter})) sides.inputs = 0;
    if (is_one_of(of.kind, {kReduce, kGather})) sides.outputs = 0;
    return sides;
}

/// Element `at` of output block `block`, by definition.
double expected(const Case& of, Rank rank, int ranks, std::size_t block, std::size_t at) {
    const auto from = static_cast<Rank>(block);
    const std::size_t own = static_cast<std::size_t>(rank) * of.count + at;
    if (of.kind == kBroadcast) return value(of.root, at);
    if (of.kind == kScatter) return value(of.root, own);
    if (of.kind == kAllToAll) return value(from, own);
    if (is_one_of(of.kind, {kAllGather, kGather})) return value(from, at);
    double sum = 0;
    for (Rank peer = 0; peer < ranks; ++peer)
        sum += value(peer, of.kind == kReduceScatter ? own : at);
    return of.op == ReduceOp::kAvg ? sum / ranks : sum;
}

device::DeviceLaunch wanted_by(const Case& of) {
    return {.plan = of.plan, .schedule = schedule::built_in()->find(of.algorithm, of.kind)};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Case& of) {
    out << schedule::to_string(of.kind) << ", " << of.count << " of type "
        << static_cast<int>(of.type) << ", root " << of.root << ", offset " << of.offset << " and "
        << of.offset_by_rank << " with each rank" << (of.in_place ? ", in place" : "");
    if (of.plan.has_value())
        out << ", protocol " << static_cast<int>(of.plan->protocol) << " in " << of.plan->blocks
            << " blocks of " << of.plan->threads;
    if (!of.algorithm.empty()) out << ", " << of.algorithm;
    return out;
}

Buffer::Buffer(const fakes::DeviceRank& member, const Case& of, std::size_t blocks) {
    constexpr std::size_t kBehind = 16;
    const std::size_t size = size_of(of.type);
    const std::size_t offset =
        of.offset + of.offset_by_rank * static_cast<std::size_t>(member.group.rank());
    const std::size_t bytes = (offset + blocks * of.count + kBehind) * size;
    auto* const base = std::bit_cast<std::byte*>(member.driver.allocate(bytes));
    std::fill_n(base, bytes, kPoison);
    std::byte* at = base + offset * size;
    before_ = {base, at};
    bytes_ = {at, blocks * of.count * size};
    for (std::size_t block = 0; block < blocks; ++block, at += of.count * size)
        blocks_.push_back({at, of.count});
    behind_ = {at, base + bytes};
}

std::size_t Buffer::strays() const {
    const auto is_changed = [](std::byte byte) { return byte != kPoison; };
    return static_cast<std::size_t>(std::ranges::count_if(before_, is_changed) +
                                    std::ranges::count_if(behind_, is_changed));
}

CaseRun::CaseRun(const Case& of, fakes::DeviceRank& member)
    : case_(of),
      member_(member),
      input_(member, of, sides_of(of, member.group.rank(), member.group.size()).inputs),
      output_(member, of, sides_of(of, member.group.rank(), member.group.size()).outputs),
      inputs_(input_.blocks()),
      outputs_(output_.blocks()) {
    if (of.in_place && of.kind != kAllToAll) share_memory();
    fill_inputs();
}

/// As schedule::Placement says.
void CaseRun::share_memory() {
    const auto own = static_cast<std::size_t>(member_.group.rank());
    if (inputs_.empty() || outputs_.empty()) return;
    if (inputs_.size() < outputs_.size()) {
        inputs_ = outputs_.subspan(own, 1);
    } else if (inputs_.size() > outputs_.size()) {
        outputs_ = inputs_.subspan(own, 1);
    } else {
        inputs_ = outputs_;
    }
}

void CaseRun::fill_inputs() {
    std::size_t first = 0;
    for (const Block& block : inputs_) {
        const auto element = [&](std::size_t i) { return value(member_.group.rank(), first + i); };
        Pattern(case_.type, element).fill(block);
        first += block.count;
    }
}

Collective CaseRun::collective() const {
    return {.kind = case_.kind,
            .type = case_.type,
            .op = case_.op,
            .root = case_.root,
            .inputs = inputs_,
            .outputs = outputs_,
            .is_even = case_.kind == kAllToAll && !case_.has_split_sizes};
}

Status CaseRun::launch() const {
    PCCL_TRY(member_.group.launch(collective(), nullptr, wanted_by(case_)));
    return member_.group.health();
}

std::size_t CaseRun::wrong_elements() const {
    std::size_t wrong = 0;
    for (std::size_t block = 0; block < outputs_.size(); ++block) {
        const auto element = [&](std::size_t at) {
            return expected(case_, member_.group.rank(), member_.group.size(), block, at);
        };
        wrong += Pattern(case_.type, element).differences(outputs_[block]);
    }
    return wrong;
}

void CaseRun::expect_results() const {
    const Rank rank = member_.group.rank();
    EXPECT_EQ(wrong_elements(), 0U) << case_ << ", rank " << rank;
    EXPECT_EQ(input_.strays() + output_.strays(), 0U) << case_ << ", rank " << rank;
}

void CaseRun::overwrite_outputs(std::byte value) const {
    std::ranges::fill(output_.bytes(), value);
}

void CaseRun::overwrite(std::byte value) const {
    std::ranges::fill(input_.bytes(), value);
    overwrite_outputs(value);
}

bool CaseRun::holds_only(std::byte value) const {
    const auto is_it = [value](std::byte byte) { return byte == value; };
    return std::ranges::all_of(input_.bytes(), is_it) &&
           std::ranges::all_of(output_.bytes(), is_it);
}

RunTogether::RunTogether(const std::vector<Case>& cases, fakes::DeviceRank& member)
    : member_(member) {
    for (const Case& each : cases) runs_.emplace_back(each, member);
}

std::vector<Collective> RunTogether::collectives() const {
    std::vector<Collective> all;
    std::ranges::transform(runs_, std::back_inserter(all), &CaseRun::collective);
    return all;
}

Status RunTogether::launch() const {
    PCCL_TRY(launch_and_look_away());
    return member_.group.health();
}

Status RunTogether::launch_and_look_away() const {
    return member_.group.launch_all(collectives(), nullptr, wanted_by(runs_.front().of()));
}

void RunTogether::expect_results() const { std::ranges::for_each(runs_, &CaseRun::expect_results); }

bool RunTogether::has_results() const { return std::ranges::all_of(runs_, &CaseRun::has_results); }

void RunTogether::overwrite_outputs(std::byte value) const {
    for (const CaseRun& run : runs_) run.overwrite_outputs(value);
}

void RunTogether::overwrite(std::byte value) const {
    for (const CaseRun& run : runs_) run.overwrite(value);
}

bool RunTogether::holds_only(std::byte value) const {
    return std::ranges::all_of(runs_, [=](const CaseRun& run) { return run.holds_only(value); });
}

void run_cases(int ranks, const std::vector<Case>& cases) {
    fakes::run_device_ranks({.size = ranks}, [&](fakes::DeviceRank& member) {
        for (const Case& each : cases) {
            const CaseRun run(each, member);
            const Status status = run.launch();
            ASSERT_TRUE(status.is_ok()) << each << ": " << status.to_string();
            run.expect_results();
        }
    });
}

}  // namespace pccl::comm
