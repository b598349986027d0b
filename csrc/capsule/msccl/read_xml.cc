// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/msccl/read_xml.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "csrc/base/text/words.h"
#include "csrc/capsule/limits.h"

namespace pccl::capsule::msccl {
namespace {

using schedule::Action;
using schedule::Buffer;
using sys::shown;
using sys::XmlText;

constexpr int kMostChunks = 1 << 25;
constexpr int kMostSteps = 1 << 20;
constexpr int kMostBlocks = 1024;
constexpr FileOffset kNotThere = -1;
// Limit over all steps, so that a traversal takes bounded time.
constexpr long long kMostCounted = 1LL << 24U;

struct Type {
    std::string_view name;
    Action action;
    bool has_src;
    bool has_dst;
};
constexpr std::array<Type, 9> kTypes{{{"s", Action::kSend, true, false},
                                      {"r", Action::kRecv, false, true},
                                      {"rcs", Action::kRecvCopySend, false, true},
                                      {"rrs", Action::kRecvReduceSend, true, false},
                                      {"rrc", Action::kRecvReduce, true, true},
                                      {"rrcs", Action::kRecvReduceCopySend, true, true},
                                      {"cpy", Action::kCopy, true, true},
                                      {"re", Action::kReduce, true, true},
                                      {"nop", Action::kNop, false, false}}};

template <typename List>
const auto* named(const List& list, std::string_view name) {
    const auto found = std::ranges::find(list, name, [](const auto& each) { return each.name; });
    return found == list.end() ? nullptr : &*found;
}

/// Attributes that a <tb> sets for all its steps.
struct Ports {
    int id = 0;
    schedule::PeerPort from;
    schedule::PeerPort to;
};

/// A <step> that waits for another, identified by the id of its <tb>.
struct StepDependency {
    pugi::xml_node node;
    int block = 0;  // index within its <gpu>
    int step = 0;
    int after_block = 0;
    int after_step = 0;
};

class AlgoReader {
   public:
    AlgoReader(const XmlText& text, const std::optional<AlgoCollective>& custom)
        : text_(text), custom_(custom) {}

    Result<Algo> read(pugi::xml_node root) {
        if (std::string_view(root.name()) != "algo")
            return text_.refuse(root, "the root is <", shown(root.name()),
                                ">; MSCCL's XML begins with <algo>");
        Algo algo{.origin = root.offset_debug(),
                  .place = [&text = text_](FileOffset origin) { return text.place(origin); }};
        algo.name = root.attribute("name").value();
        PCCL_TRY(read_protocol(root, algo));
        PCCL_TRY(read_shape(root, algo));
        PCCL_TRY(read_sizes(root, algo));
        for (const pugi::xml_node node : root.children()) {
            if (node.type() != pugi::node_element) continue;
            PCCL_TRY(check_name(node, "gpu"));
            PCCL_TRY(read_gpu(node, algo));
        }
        for (const AlgoGpu& gpu : algo.gpus)
            if (gpu.origin == kNotThere)
                return text_.refuse(root, "a <gpu> is missing of ", algo.gpus.size());
        return algo;
    }

   private:
    [[nodiscard]] Status check_name(pugi::xml_node node, std::string_view wanted) const {
        if (node.name() == wanted) return Status::ok();
        return text_.refuse(node, "<", shown(node.name()), "> in <", node.parent().name(),
                            ">, where <", wanted, "> belongs");
    }

    /// Reads an attribute that is required unless there is a `fallback`.
    [[nodiscard]] Status number(pugi::xml_node node, const char* name, std::int64_t low,
                                std::int64_t high, std::int64_t& value,
                                std::optional<std::int64_t> fallback = {}) const {
        const pugi::xml_attribute attribute = node.attribute(name);
        if (!attribute && fallback) {
            value = *fallback;
            return Status::ok();
        }
        const auto found = number_in<std::int64_t>(attribute.value(), low, high);
        if (!found)
            return text_.refuse(node, "<", node.name(), "> has ", name, "=\"",
                                shown(attribute.value()), "\"; it must be ", low, " to ", high);
        value = *found;
        return Status::ok();
    }
    [[nodiscard]] Status number(pugi::xml_node node, const char* name, int low, int high,
                                int& value, std::optional<int> fallback = {}) const {
        std::int64_t wide = 0;
        PCCL_TRY(number(node, name, std::int64_t{low}, std::int64_t{high}, wide,
                        fallback ? std::optional<std::int64_t>(*fallback) : std::nullopt));
        value = static_cast<int>(wide);
        return Status::ok();
    }

    [[nodiscard]] Status read_protocol(pugi::xml_node root, Algo& algo) const {
        const pugi::xml_attribute attribute = root.attribute("proto");
        algo.protocol = protocol_called(attribute.value());
        if (algo.protocol || !attribute) return Status::ok();
        return text_.refuse(root, "<algo> has proto=\"", shown(attribute.value()),
                            "\"; there are Simple, LL and LL128");
    }

    [[nodiscard]] Status read_collective(pugi::xml_node root, Algo& algo) const {
        const std::string_view name = root.attribute("coll").value();
        if (name == "custom" && custom_) {
            algo.kind = custom_->kind;
            return Status::ok();
        }
        const auto collective = collective_called(std::string(name));
        if (custom_)
            return text_.refuse(root, "<algo> has coll=\"", shown(name),
                                "\"; a collective is given for coll=\"custom\" alone");
        if (!collective)
            return Status::unsupported(concat(
                text_.place(root), ": <algo> has coll=\"", shown(name),
                name == "custom" ? "\", which names no collective: import it with the one that it "
                                   "computes (pccl capsule import --collective broadcast --root "
                                   "0, or Capsule.from_msccl)"
                                 : "\", which is none of PCCL's collectives"));
        algo.kind = *collective;
        return Status::ok();
    }

    [[nodiscard]] Status read_root(pugi::xml_node root, int gpus, Algo& algo) const {
        const Rank given = custom_ ? custom_->root : 0;
        if (given < 0 || given >= gpus)
            return text_.refuse(root, "the root given is ", given, "; it must be 0 to ", gpus - 1);
        PCCL_TRY(number(root, "root", 0, gpus - 1, algo.root, given));
        if (!custom_ || algo.root == given) return Status::ok();
        return text_.refuse(root, "<algo> has root=\"", algo.root, "\", and the root given is ",
                            given);
    }

    [[nodiscard]] Status read_shape(pugi::xml_node root, Algo& algo) const {
        PCCL_TRY(read_collective(root, algo));
        int gpus = 0;
        int chunks = 0;
        int in_place = 0;
        PCCL_TRY(number(root, "ngpus", 1, schedule::kMostRanks, gpus));
        PCCL_TRY(number(root, "nchunksperloop", 1, kMostChunks, chunks));
        PCCL_TRY(number(root, "inplace", 0, 1, in_place, 0));
        PCCL_TRY(read_root(root, gpus, algo));
        const int blocks = std::max(schedule::blocks(algo.kind, Buffer::kInput, gpus),
                                    schedule::blocks(algo.kind, Buffer::kOutput, gpus));
        if (chunks % blocks != 0)
            return text_.refuse(root, "<algo> has nchunksperloop=\"", chunks,
                                "\", which is no multiple of its ", blocks, " blocks");
        if (static_cast<long long>(gpus) * chunks > kMostPlaces)
            return text_.refuse(root, "<algo> has ", gpus, " gpus with ", chunks,
                                " chunks, more than are verified");
        algo.chunks = chunks / blocks;
        algo.in_place = in_place == 1;
        algo.gpus.assign(static_cast<std::size_t>(gpus), {.origin = kNotThere});
        return Status::ok();
    }

    /// Reads attributes of newer versions; files without them apply to any size.
    [[nodiscard]] Status read_sizes(pugi::xml_node root, Algo& algo) const {
        constexpr auto kMost = static_cast<std::int64_t>(kMostSize);
        constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
        std::int64_t least = 0;
        std::int64_t most = 0;
        PCCL_TRY(number(root, "minBytes", std::int64_t{0}, kMost, least, 0));
        PCCL_TRY(number(root, "maxBytes", std::int64_t{0}, kAny, most, 0));
        if (most != 0 && most < least)
            return text_.refuse(root, "<algo> has maxBytes=\"", most, "\" below minBytes");
        algo.sizes.least = static_cast<std::uint64_t>(least);
        // No call exceeds kMost either.
        if (most != 0 && most <= kMost) algo.sizes.most = static_cast<std::uint64_t>(most);
        return Status::ok();
    }

    [[nodiscard]] Status read_gpu(pugi::xml_node node, Algo& algo) {
        int id = 0;
        PCCL_TRY(number(node, "id", 0, static_cast<int>(algo.gpus.size()) - 1, id));
        AlgoGpu& gpu = algo.gpus[static_cast<std::size_t>(id)];
        if (gpu.origin != kNotThere)
            return text_.refuse(node, "<gpu> ", id, " is there a second time");
        gpu.origin = node.offset_debug();
        PCCL_TRY(number(node, "s_chunks", 0, kMostChunks, gpu.scratch_chunks, 0));
        scratch_ += gpu.scratch_chunks;
        if (scratch_ > kMostPlaces)
            return text_.refuse(node, "the <gpu>s have more than ", kMostPlaces,
                                " chunks of scratch together");
        for (const pugi::xml_node child : node.children()) {
            if (child.type() != pugi::node_element) continue;
            if (std::string_view(child.name()) == "copy") {
                PCCL_TRY(read_copy(child, algo, id));
                continue;
            }
            PCCL_TRY(check_name(child, "tb"));
            PCCL_TRY(read_block(child, algo, gpu));
        }
        return resolve_waits(gpu);
    }

    /// Reads a <copy>, which TACCL writes for a chunk that is input and output: steps use it in the
    /// output.
    [[nodiscard]] Status read_copy(pugi::xml_node node, Algo& algo, Rank rank) {
        const int ranks = static_cast<int>(algo.gpus.size());
        const int inputs = schedule::blocks(algo.kind, Buffer::kInput, ranks) * algo.chunks;
        const int outputs = schedule::blocks(algo.kind, Buffer::kOutput, ranks) * algo.chunks;
        int from = 0;
        int to = 0;
        PCCL_TRY(number(node, "i_off", 0, inputs - 1, from));
        PCCL_TRY(number(node, "o_off", 0, outputs - 1, to));
        if (++counted_ > kMostCounted)
            return text_.refuse(node, "the <copy>s move more than ", kMostCounted, " chunks");
        if (!algo.in_place) {
            algo.gpus[static_cast<std::size_t>(rank)].copies.push_back(
                {.origin = node.offset_debug(),
                 .action = Action::kCopy,
                 .src = {Buffer::kInput, from},
                 .dst = {Buffer::kOutput, to},
                 .count = 1});
            return Status::ok();
        }
        const int own = rank * algo.chunks;
        if (from + (inputs < outputs ? own : 0) == to + (outputs < inputs ? own : 0))
            return Status::ok();
        return text_.refuse(node, "<copy> has i_off=\"", from, "\" and o_off=\"", to,
                            "\", which are not one place in memory, as inplace=\"1\" requires");
    }

    [[nodiscard]] Status read_block(pugi::xml_node node, const Algo& algo, AlgoGpu& gpu) {
        const int last = static_cast<int>(algo.gpus.size()) - 1;
        if (std::cmp_greater_equal(gpu.blocks.size(), kMostBlocks))
            return text_.refuse(node, "more than ", kMostBlocks, " <tb>s in a <gpu>");
        Ports ports;
        int channel = 0;
        PCCL_TRY(number(node, "id", 0, kMostSteps, ports.id));
        PCCL_TRY(number(node, "send", -1, last, ports.to.peer, -1));
        PCCL_TRY(number(node, "recv", -1, last, ports.from.peer, -1));
        PCCL_TRY(number(node, "chan", -1, kMostChannels - 1, channel, 0));
        ports.from.channel = ports.to.channel = std::max(channel, 0);
        if (std::ranges::find(ids_, ports.id) != ids_.end())
            return text_.refuse(node, "<tb> ", ports.id, " is there a second time");
        ids_.push_back(ports.id);
        ThreadBlock block;
        for (const pugi::xml_node child : node.children()) {
            if (child.type() != pugi::node_element) continue;
            PCCL_TRY(check_name(child, "step"));
            PCCL_ASSIGN_OR_RETURN(AlgoStep step, read_step(child, ports, block));
            for (ChunkSpan* span : {&step.src, &step.dst}) find_scratch(algo, gpu, *span);
            block.steps.push_back(step);
        }
        gpu.blocks.push_back(std::move(block));
        return Status::ok();
    }

    /// Finds scratch that TACCL numbers behind the output.
    static void find_scratch(const Algo& algo, const AlgoGpu& gpu, ChunkSpan& span) {
        const int ranks = static_cast<int>(algo.gpus.size());
        const int outputs = schedule::blocks(algo.kind, Buffer::kOutput, ranks) * algo.chunks;
        if (span.buffer != Buffer::kOutput || gpu.scratch_chunks == 0 || span.offset < outputs)
            return;
        span = {Buffer::kScratch, span.offset - outputs};
    }

    [[nodiscard]] Result<AlgoStep> read_step(pugi::xml_node node, const Ports& ports,
                                             const ThreadBlock& block) {
        const Type* const type = named(kTypes, node.attribute("type").value());
        if (type == nullptr)
            return Status::unsupported(concat(text_.place(node), ": <step> has type=\"",
                                              shown(node.attribute("type").value()),
                                              "\"; there are s, r, rcs, rrs, rrc, rrcs, cpy, re "
                                              "and nop"));
        AlgoStep step{.origin = node.offset_debug(), .action = type->action};
        int number_in_block = 0;
        const int expected = static_cast<int>(block.steps.size());
        PCCL_TRY(number(node, "s", 0, kMostSteps, number_in_block, expected));
        if (number_in_block != expected)
            return text_.refuse(node, "<step> has s=\"", number_in_block, "\" where ", expected,
                                " follows");
        PCCL_TRY(read_peers(node, ports, *type, step));
        if (type->has_src) PCCL_TRY(read_span(node, "srcbuf", "srcoff", step.src));
        if (type->has_dst) PCCL_TRY(read_span(node, "dstbuf", "dstoff", step.dst));
        if (type->has_src || type->has_dst)
            PCCL_TRY(number(node, "cnt", 1, kMostChunks, step.count, 1));
        counted_ += step.count;
        if (counted_ > kMostCounted)
            return text_.refuse(node, "the steps move more than ", kMostCounted, " chunks");
        StepDependency wait{
            .node = node, .block = static_cast<int>(ids_.size()) - 1, .step = number_in_block};
        PCCL_TRY(number(node, "depid", -1, kMostSteps, wait.after_block, -1));
        PCCL_TRY(number(node, "deps", -1, kMostSteps, wait.after_step, -1));
        if (wait.after_block < 0 || wait.after_step < 0) return step;
        if (wait.after_block != ports.id)
            waits_.push_back(wait);
        else if (wait.after_step >= number_in_block)
            return text_.refuse(node, "<step> ", number_in_block, " waits for step ",
                                wait.after_step, " of its own <tb>, which is not before it");
        return step;
    }

    /// Resolves the waits after all <tb>s of a <gpu> were read.
    [[nodiscard]] Status resolve_waits(AlgoGpu& gpu) {
        for (const StepDependency& wait : std::exchange(waits_, {})) {
            const auto found = std::ranges::find(ids_, wait.after_block);
            const auto lane = static_cast<std::size_t>(found - ids_.begin());
            if (found == ids_.end() ||
                std::cmp_greater_equal(wait.after_step, gpu.blocks[lane].steps.size()))
                return text_.refuse(wait.node, "<step> waits for step ", wait.after_step,
                                    " of <tb> ", wait.after_block, ", which is not there");
            gpu.blocks[static_cast<std::size_t>(wait.block)]
                .steps[static_cast<std::size_t>(wait.step)]
                .after.push_back({static_cast<int>(lane), wait.after_step});
        }
        ids_.clear();
        return Status::ok();
    }

    [[nodiscard]] Status read_peers(pugi::xml_node node, const Ports& ports, const Type& type,
                                    AlgoStep& step) const {
        const bool receives = type.name.front() == 'r' && type.action != Action::kReduce;
        const bool sends = type.name.back() == 's';
        if (receives && !ports.from.is_used())
            return text_.refuse(node, "a step of type ", type.name, " in a <tb> with recv=\"-1\"");
        if (sends && !ports.to.is_used())
            return text_.refuse(node, "a step of type ", type.name, " in a <tb> with send=\"-1\"");
        if (receives) step.from = ports.from;
        if (sends) step.to = ports.to;
        return Status::ok();
    }

    [[nodiscard]] Status read_span(pugi::xml_node node, const char* buffer, const char* offset,
                                   ChunkSpan& span) const {
        const std::string_view name = node.attribute(buffer).value();
        constexpr std::string_view kBuffers = "ios";
        const std::size_t which = name.size() == 1 ? kBuffers.find(name) : std::string_view::npos;
        if (which == std::string_view::npos)
            return text_.refuse(node, "<step> has ", buffer, "=\"", shown(name),
                                "\"; it must be i, o or s");
        span.buffer = static_cast<Buffer>(which);
        return number(node, offset, 0, kMostChunks, span.offset);
    }

    const XmlText& text_;
    const std::optional<AlgoCollective>& custom_;
    std::vector<int> ids_;               // of the <tb>s of a <gpu>
    std::vector<StepDependency> waits_;  // of the <tb>s of a <gpu>
    long long counted_ = 0;
    long long scratch_ = 0;
};

}  // namespace

Result<Algo> read_xml(const XmlText& text, pugi::xml_node root,
                      const std::optional<AlgoCollective>& custom) {
    return AlgoReader(text, custom).read(root);
}

}  // namespace pccl::capsule::msccl
