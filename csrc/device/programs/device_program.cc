// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/programs/device_program.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::device {
namespace {

using schedule::Action;
using schedule::Slice;
using schedule::Slices;
using schedule::Step;

// Most chunks of a message. An LL128 chunk has a pair of lines of its own at least. That many may
// be too many for LL.
constexpr int kMostChunksInMessage = abi::kLL128SlotLines / 2;
static_assert(abi::kPairBytes >= abi::kChunkAlignment);

/// Returns the bytes of a slot for each of `longest` chunks.
std::size_t room_for_chunk(abi::MessageForm form, std::size_t longest) {
    switch (form) {
        case abi::MessageForm::kLL:
            return abi::kLLSlotBytes / longest;
        case abi::MessageForm::kLL128:
            return abi::kLL128SlotLines / 2 / longest * abi::kPairBytes;
        case abi::MessageForm::kPlain:
            break;
    }
    return abi::kSlotBytes / longest;
}

bool receives_and_reduces(Action action) {
    return action == Action::kRecvReduce || action == Action::kRecvReduceSend ||
           action == Action::kRecvReduceCopySend;
}

/// Returns the operands of a step, without the message that it receives.
std::vector<Slices> sources_of(const Step& step) {
    if (step.action == Action::kReduce) return {step.dst, step.src};
    if (receives_and_reduces(step.action)) return {moved_by(step)};
    if (!step.src.is_empty()) return {step.src};
    return {};
}

/// Channels of a rank to each peer and from each, numbered without gaps, since workers share the
/// available FIFOs by the number of channels. Both ends use the same channels and therefore number
/// them alike.
class Channels {
   public:
    explicit Channels(const schedule::Program& program) {
        for (const schedule::Lane& lane : program.lanes)
            for (const Step& step : lane) {
                if (step.from.is_used()) used_[{step.from.peer, false}].insert(step.from.channel);
                if (step.to.is_used()) used_[{step.to.peer, true}].insert(step.to.channel);
            }
    }

    /// Returns the number of a channel that the program uses.
    [[nodiscard]] int number(const schedule::PeerPort& port, bool is_sending) const {
        const std::set<int>& channels = used_.at({port.peer, is_sending});
        return static_cast<int>(std::distance(channels.begin(), channels.find(port.channel)));
    }
    /// Returns the most channels to or from one peer.
    [[nodiscard]] int most() const {
        std::size_t most = 0;
        for (const auto& [peer, channels] : used_) most = std::max(most, channels.size());
        return static_cast<int>(most);
    }

   private:
    std::map<std::pair<Rank, bool>, std::set<int>> used_;
};

class Tabulator {
   public:
    Tabulator(const schedule::Program& program, int chunks)
        : program_(program), chunks_(chunks), channels_(program) {
        tables_.scratch_chunks = program.scratch_chunks;
    }

    Result<DeviceTables> run() {
        for (const schedule::Lane& lane : program_.lanes) PCCL_TRY(add(lane));
        mark_awaited();
        lay_out();
        return std::move(tables_);
    }

   private:
    Status add(const schedule::Lane& lane) {
        steps_.emplace_back();
        ports_.emplace_back();
        for (const Step& step : lane) PCCL_TRY(add(step));
        const int ports = next(ports_.back());
        if (ports <= abi::kMostLanePorts) return Status::ok();
        return Status::unsupported(
            concat("a lane with ", ports, " ports; a GPU runs up to ", abi::kMostLanePorts));
    }

    Status add(const Step& step) {
        if (step.action == Action::kSwitchPhase || step.after.size() > abi::kMostLaneWaits)
            return Status::unsupported(concat("a GPU does not run '", to_string(step), "'"));
        const std::vector<Slices> sources = sources_of(step);
        abi::DeviceStep entry{.sources = {},
                              .target = {},
                              .source_count = static_cast<int>(sources.size()),
                              .has_target = step.dst.is_empty() ? 0 : 1,
                              .chunks = count_of(step),
                              .from = port(step.from, false),
                              .to = port(step.to, true),
                              .received = 0,
                              .sent = 0,
                              .first_wait = next(tables_.waits),
                              .waits = static_cast<int>(step.after.size()),
                              .is_awaited = 0};
        std::ranges::transform(sources, entry.sources,
                               [&](const Slices& slices) { return place(slices); });
        if (entry.has_target != 0) entry.target = place(step.dst);
        entry.received = number_of(entry.from);
        entry.sent = number_of(entry.to);
        for (const schedule::Dependency& after : step.after)
            tables_.waits.push_back({after.lane, after.step});
        steps_.back().push_back(entry);
        return Status::ok();
    }

    abi::DeviceSlice place(const Slices& slices) {
        if (slices.size() == 1 && slices[0].offset % chunks_ + slices[0].count <= chunks_)
            return slice_of(slices[0]);
        const abi::DeviceSlice listed{abi::DeviceBuffer::kListed, next(tables_.places), 0};
        for (schedule::ChunkWalk walk(slices); walk.has_next();)
            tables_.places.push_back(slice_of(walk.next()));
        return listed;
    }

    [[nodiscard]] abi::DeviceSlice slice_of(const Slice& slice) const {
        const bool is_scratch = slice.buffer == schedule::Buffer::kScratch;
        return {.buffer = static_cast<abi::DeviceBuffer>(slice.buffer),
                .at = is_scratch ? slice.offset : slice.offset / chunks_,
                .chunk = slice.offset % chunks_};
    }

    /// Returns the port's index among those of the lane.
    int port(const schedule::PeerPort& wanted, bool is_sending) {
        if (!wanted.is_used()) return abi::kNoDevicePort;
        auto& ports = ports_.back();
        const int channel = channels_.number(wanted, is_sending);
        const auto found = std::ranges::find_if(ports, [&](const abi::DevicePort& each) {
            return each.peer == wanted.peer && each.channel == channel &&
                   (each.is_sending != 0) == is_sending;
        });
        const auto index = static_cast<int>(found - ports.begin());
        if (found == ports.end()) ports.push_back({wanted.peer, channel, is_sending ? 1 : 0, 0});
        return index;
    }
    /// Returns the number of the next message of a port of the lane; 0 for no port.
    int number_of(int port) {
        return port == abi::kNoDevicePort
                   ? 0
                   : ports_.back()[static_cast<std::size_t>(port)].messages++;
    }

    /// Marks steps that others wait for. With scratch, which all lanes finish together, these
    /// include the last.
    void mark_awaited() {
        for (const abi::DeviceWait& wait : tables_.waits) await(wait.lane, wait.step);
        tables_.is_coupled = !tables_.waits.empty();
        if (program_.scratch_chunks == 0 || program_.lanes.size() < 2) return;
        tables_.is_coupled = true;
        for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane)
            if (!program_.lanes[lane].empty())
                await(static_cast<int>(lane), static_cast<int>(program_.lanes[lane].size()) - 1);
    }

    void await(int lane, int step) {
        steps_[static_cast<std::size_t>(lane)][static_cast<std::size_t>(step)].is_awaited = 1;
    }

    void lay_out() {
        for (std::size_t lane = 0; lane < steps_.size(); ++lane)
            tables_.lanes.push_back({next(steps_[lane]), next(ports_[lane])});
        tables_.most_steps = in_rows(steps_, tables_.steps);
        tables_.most_ports = in_rows(ports_, tables_.ports);
    }

    /// Fills one row for each lane, all as long as the longest, and returns that length.
    template <typename Entry>
    static int in_rows(const std::vector<std::vector<Entry>>& lanes, std::vector<Entry>& rows) {
        std::size_t most = 0;
        for (const auto& lane : lanes) most = std::max(most, lane.size());
        for (const auto& lane : lanes) {
            rows.insert(rows.end(), lane.begin(), lane.end());
            rows.resize(rows.size() + most - lane.size(), Entry{});
        }
        return static_cast<int>(most);
    }

    template <typename Entry>
    static int next(const std::vector<Entry>& entries) {
        return static_cast<int>(entries.size());
    }

    const schedule::Program& program_;
    const int chunks_;
    const Channels channels_;
    DeviceTables tables_;
    std::vector<std::vector<abi::DeviceStep>> steps_;  // by lane
    std::vector<std::vector<abi::DevicePort>> ports_;
};

void include(DeviceGrid& grid, const schedule::Program& program) {
    grid.lanes = std::max(grid.lanes, static_cast<int>(program.lanes.size()));
    grid.channels = std::max(grid.channels, Channels(program).most());
    for (const schedule::Lane& lane : program.lanes)
        for (const Step& step : lane)
            if (step.from.is_used() || step.to.is_used())
                grid.longest = std::max(grid.longest, count_of(step));
}

}  // namespace

std::size_t DeviceGrid::window_bytes(abi::MessageForm form) const {
    const std::size_t room = room_for_chunk(form, static_cast<std::size_t>(longest));
    return room / abi::kChunkAlignment * abi::kChunkAlignment;
}

int DeviceGrid::most_workers() const {
    return std::min(fifos / channels, abi::kMostBlocks / lanes);
}

bool DeviceGrid::suits_ll(std::size_t bytes, std::size_t windows) const {
    const auto workers = static_cast<std::size_t>(most_workers());
    const auto window = static_cast<std::size_t>(chunks) * window_bytes(abi::MessageForm::kLL);
    return bytes <= workers * windows * window;
}

int DeviceGrid::workers(std::size_t bytes) const {
    const std::size_t wanted = bytes / (static_cast<std::size_t>(chunks) * least_in_chunk);
    return static_cast<int>(
        std::clamp<std::size_t>(wanted, 1, static_cast<std::size_t>(most_workers())));
}

Result<DeviceGrid> device_grid(const schedule::Schedule& schedule,
                               const kernels::Thresholds& thresholds) {
    DeviceGrid grid{.chunks = schedule.shape.chunks,
                    .least_in_chunk = thresholds.schedules.least_in_chunk,
                    .fifos = thresholds.schedules.fifos};
    for (const schedule::Program& program : schedule.programs) include(grid, program);
    const auto refuse = [&](int count, const char* what, int most) {
        return Status::unsupported(
            concat(schedule.name, " with ", count, " ", what, "; a GPU runs up to ", most));
    };
    if (grid.lanes > abi::kMostBlocks) return refuse(grid.lanes, "lanes", abi::kMostBlocks);
    if (grid.channels > grid.fifos) return refuse(grid.channels, "channels", grid.fifos);
    if (grid.longest > kMostChunksInMessage)
        return refuse(grid.longest, "chunks in a message", kMostChunksInMessage);
    if (schedule.shape.slots > abi::kDeviceSlots)
        return refuse(schedule.shape.slots, "slots", abi::kDeviceSlots);
    return grid;
}

Result<DeviceTables> tabulate(const schedule::Program& program, int chunks) {
    return Tabulator(program, chunks).run();
}

}  // namespace pccl::device
