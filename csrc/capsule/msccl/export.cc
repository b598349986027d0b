// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/msccl/export.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <pugixml.hpp>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/capsule/msccl/algo.h"

namespace pccl::capsule {
namespace {

using schedule::Buffer;
using schedule::Dependency;
using schedule::Lane;
using schedule::PeerPort;
using schedule::Program;
using schedule::Schedule;
using schedule::Shape;
using schedule::Slice;
using schedule::Slices;
using schedule::Step;

constexpr std::array<std::string_view, 10> kTypeNames{"nop", "cpy", "re",  "s",    "r",
                                                      "rcs", "rrc", "rrs", "rrcs", ""};

/// A <step> with its dependency.
struct Made {
    const Step* step = nullptr;  // null: only waits
    std::optional<Dependency> after{};
    bool is_awaited = false;
};

/// A <tb>.
struct ExportedBlock {
    PeerPort from{};
    PeerPort to{};
    std::vector<Made> steps{};

    [[nodiscard]] bool takes(const Step& step) const {
        const auto agree = [](const PeerPort& own, const PeerPort& other) {
            return !own.is_used() || !other.is_used() || own == other;
        };
        const auto share = [](const PeerPort& a, const PeerPort& b) {
            return !a.is_used() || !b.is_used() || a.channel == b.channel;
        };
        return agree(from, step.from) && agree(to, step.to) && share(step.from, step.to) &&
               share(from, step.to) && share(step.from, to);
    }
    void add_ports(const Step& step) {
        if (step.from.is_used()) from = step.from;
        if (step.to.is_used()) to = step.to;
    }
};

/// Thread blocks of one rank, with their steps in the order of its lanes.
class ExportedBlocks {
   public:
    explicit ExportedBlocks(const Program& program) : program_(program) {}

    Result<std::vector<ExportedBlock>> make(Rank rank) {
        for (const Lane& lane : program_.lanes) {
            const std::size_t first = blocks_.size();
            auto& places = places_.emplace_back();
            for (const Step& step : lane) {
                const auto cannot = [&](const char* why) {
                    return Status::unsupported(concat("rank ", rank, " lane ", places_.size() - 1,
                                                      " step ", places.size(), " (",
                                                      to_string(step), "): ", why));
                };
                if (step.src.size() > 1 || step.dst.size() > 1)
                    return cannot(
                        "handles chunks that do not follow each other; a step of MSCCL "
                        "has one run of them");
                const auto block = block_for(step, first);
                if (!block)
                    return cannot(
                        "receives and sends on two channels, or uses a queue that other "
                        "steps use with another peer; a thread block has one of each");
                blocks_[*block].add_ports(step);
                places.push_back({static_cast<int>(*block), 0});
            }
        }
        add_steps();
        return std::move(blocks_);
    }

   private:
    /// Returns a thread block of the current lane, whose thread blocks begin with `first`: the one
    /// that has the step's queues, or else the last one that can take them, or a new one.
    std::optional<std::size_t> block_for(const Step& step, std::size_t first) {
        if (!ExportedBlock{}.takes(step)) return std::nullopt;
        std::optional<std::size_t> found;
        for (std::size_t i = first; i < blocks_.size(); ++i) {
            const bool has_queue = (step.from.is_used() && blocks_[i].from == step.from) ||
                                   (step.to.is_used() && blocks_[i].to == step.to);
            if (!has_queue) continue;
            if (found || !blocks_[i].takes(step)) return std::nullopt;
            found = i;
        }
        if (found) return found;
        if (blocks_.size() == first || !blocks_.back().takes(step)) blocks_.emplace_back();
        return blocks_.size() - 1;
    }

    /// Adds the steps. A step may precede the steps for which it waits, so all steps get their
    /// places first, then the steps that only wait.
    void add_steps() {
        for (std::size_t lane = 0; lane < places_.size(); ++lane)
            for (std::size_t i = 0; i < places_[lane].size(); ++i) {
                auto& own = places_[lane][i];
                const std::size_t waits = awaited(lane, i).size();
                auto& steps = blocks_[at(own.lane)].steps;
                steps.resize(steps.size() + std::max<std::size_t>(waits, 1));
                own.step = static_cast<int>(steps.size()) - 1;
            }
        for (std::size_t lane = 0; lane < places_.size(); ++lane)
            for (std::size_t i = 0; i < places_[lane].size(); ++i) fill(lane, i);
    }

    void fill(std::size_t lane, std::size_t i) {
        const Dependency own = places_[lane][i];
        auto& steps = blocks_[at(own.lane)].steps;
        const auto waits = awaited(lane, i);
        for (std::size_t k = 0; k < waits.size(); ++k) {
            const Dependency awaited = places_[at(waits[k].lane)][at(waits[k].step)];
            steps[at(own.step) + 1 + k - waits.size()].after = awaited;
            blocks_[at(awaited.lane)].steps[at(awaited.step)].is_awaited = true;
        }
        steps[at(own.step)].step = &program_.lanes[lane][i];
    }

    /// Returns the dependencies on other thread blocks, by lane and step, including the previous
    /// step.
    [[nodiscard]] std::vector<Dependency> awaited(std::size_t lane, std::size_t i) const {
        const int block = places_[lane][i].lane;
        std::vector<Dependency> awaited;
        if (i > 0 && places_[lane][i - 1].lane != block)
            awaited.push_back({static_cast<int>(lane), static_cast<int>(i) - 1});
        for (const Dependency& after : program_.lanes[lane][i].after)
            if (places_[at(after.lane)][at(after.step)].lane != block) awaited.push_back(after);
        return awaited;
    }

    const Program& program_;
    std::vector<ExportedBlock> blocks_;
    std::vector<std::vector<Dependency>> places_;  // by lane and step: thread block and place there
};

class AlgoWriter {
   public:
    explicit AlgoWriter(const VerifiedCapsule& capsule)
        : capsule_(capsule), shape_(capsule.schedule().shape) {}

    Result<std::string> write() {
        pugi::xml_node algo = document_.append_child("algo");
        describe(algo);
        const Schedule& schedule = capsule_.schedule();
        for (Rank rank = 0; rank < shape_.ranks; ++rank)
            PCCL_TRY(add_gpu(algo, rank, schedule.programs[at(rank)]));
        set(algo, "nchannels", channels_);
        std::ostringstream text;
        document_.save(text, "  ", pugi::format_default | pugi::format_no_declaration);
        return text.str();
    }

   private:
    template <typename Value>
    static void set(pugi::xml_node node, const char* name, const Value& value) {
        node.append_attribute(name).set_value(value);
    }

    [[nodiscard]] int chunks_of(Buffer buffer) const {
        return schedule::blocks(shape_.kind, buffer, shape_.ranks) * shape_.chunks;
    }

    void describe(pugi::xml_node algo) const {
        const auto& [least, most] = capsule_.description().sizes;
        constexpr auto kAny = std::numeric_limits<std::uint64_t>::max();
        set(algo, "name", capsule_.schedule().name.c_str());
        const auto protocol =
            capsule_.description().protocol.value_or(schedule::MessageProtocol::kDirect);
        set(algo, "proto", std::string(msccl::name_of(protocol)).c_str());
        set(algo, "nchunksperloop",
            std::max(chunks_of(Buffer::kInput), chunks_of(Buffer::kOutput)));
        set(algo, "ngpus", shape_.ranks);
        set(algo, "coll", std::string(msccl::name_of(shape_.kind)).c_str());
        set(algo, "inplace", 0);
        set(algo, "outofplace", 1);
        set(algo, "root", shape_.root);
        set(algo, "minBytes", static_cast<unsigned long long>(least));
        set(algo, "maxBytes", static_cast<unsigned long long>(most == kAny ? 0 : most));
    }

    Status add_gpu(pugi::xml_node algo, Rank rank, const Program& program) {
        pugi::xml_node gpu = algo.append_child("gpu");
        set(gpu, "id", rank);
        set(gpu, "i_chunks", chunks_of(Buffer::kInput));
        set(gpu, "o_chunks", chunks_of(Buffer::kOutput));
        set(gpu, "s_chunks", program.scratch_chunks);
        PCCL_ASSIGN_OR_RETURN(const std::vector<ExportedBlock> blocks,
                              ExportedBlocks(program).make(rank));
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const ExportedBlock& block = blocks[i];
            const ChannelId channel = std::max(block.from.channel, block.to.channel);
            channels_ = std::max(channels_, channel + 1);
            pugi::xml_node node = gpu.append_child("tb");
            set(node, "id", static_cast<int>(i));
            set(node, "send", block.to.peer);
            set(node, "recv", block.from.peer);
            set(node, "chan", channel);
            for (std::size_t s = 0; s < block.steps.size(); ++s)
                add_step(node, static_cast<int>(s), block.steps[s]);
        }
        return Status::ok();
    }

    static void add_step(pugi::xml_node block, int number, const Made& made) {
        static const Step nop;
        const Step& step = made.step == nullptr ? nop : *made.step;
        // dst (+) incoming is written there with dst twice.
        const Slices& src = step.src.is_empty() && step.from.is_used() ? step.dst : step.src;
        const Slices& dst = step.dst.is_empty() ? step.src : step.dst;
        pugi::xml_node node = block.append_child("step");
        set(node, "s", number);
        set(node, "type",
            std::string(kTypeNames.at(static_cast<std::size_t>(step.action))).c_str());
        span(node, "srcbuf", "srcoff", src);
        span(node, "dstbuf", "dstoff", dst);
        set(node, "cnt", std::max(count_of(step), 1));
        set(node, "depid", made.after ? made.after->lane : -1);
        set(node, "deps", made.after ? made.after->step : -1);
        set(node, "hasdep", made.is_awaited ? 1 : 0);
    }

    static void span(pugi::xml_node node, const char* buffer, const char* offset,
                     const Slices& slices) {
        constexpr std::array<const char*, 3> kBuffers{"i", "o", "s"};
        const Slice slice = slices.is_empty() ? Slice{} : slices[0];
        set(node, buffer, kBuffers.at(static_cast<std::size_t>(slice.buffer)));
        set(node, offset, slice.offset);
    }

    const VerifiedCapsule& capsule_;
    const Shape& shape_;
    int channels_ = 0;
    pugi::xml_document document_;
};

}  // namespace

Result<std::string> export_msccl(const VerifiedCapsule& capsule) {
    if (capsule.switches_phases())
        return Status::unsupported("MSCCL's XML has no step that switches phases of the network");
    return AlgoWriter(capsule).write();
}

}  // namespace pccl::capsule
