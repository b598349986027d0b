#include "csrc/capsule/mscclpp/plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/msccl/algo.h"
#include "csrc/capsule/mscclpp/plan_value.h"
#include "csrc/sys/xml/xml_text.h"

namespace pccl::capsule::mscclpp {
namespace {

using schedule::Buffer;
using sys::shown;

constexpr std::size_t kMostBytes = 8U << 20U;
constexpr int kMostChunks = 1 << 20;
constexpr int kMostBlocks = 1024;
constexpr std::size_t kMostOperations = 1U << 18U;
constexpr std::size_t kMostNamed = Value::kMostNamed;
// Of all operations, so that going through them takes no longer than a moment.
constexpr long long kMostCounted = 1LL << 24U;

struct Instruction {
    std::string_view name;
    Kind kind;
    bool reads_packets = false;
    bool writes_packets = false;
    bool signals = false;
};
constexpr std::array<Instruction, 26> kInstructions{{
    {"nop", Kind::kNothing},
    {"flush", Kind::kNothing},
    {"barrier", Kind::kBarrier},
    {"sem_acquire", Kind::kAcquire},
    {"sem_release", Kind::kRelease},
    {"signal", Kind::kSignal},
    {"rlxsignal", Kind::kSignal},
    {"wait", Kind::kWait},
    {"rlxwait", Kind::kWait},
    {"copy", Kind::kMove},
    {"cpkt", Kind::kMove},
    {"upkt", Kind::kMove, true},
    {"put", Kind::kMove},
    {"pws", Kind::kMove, false, false, true},
    {"pwsf", Kind::kMove, false, false, true},
    {"ppkt", Kind::kMove, false, true},
    {"rppkt", Kind::kMove, true, true},
    {"get", Kind::kMove},
    {"re", Kind::kReduce},
    {"res", Kind::kReduce},
    {"rre", Kind::kReduce},
    {"rres", Kind::kReduce},
    {"repkt", Kind::kReduce, true},
    {"respkt", Kind::kReduce, true, true},
    {"recpkt", Kind::kReduce, true},
    {"recspkt", Kind::kReduce, true, true},
}};

Result<Buffer> buffer_of(const Value& of, const char* key) {
    PCCL_ASSIGN_OR_RETURN(const std::string name, of.text(key));
    constexpr std::string_view kBuffers = "ios";
    const std::size_t which = name.size() == 1 ? kBuffers.find(name) : std::string_view::npos;
    if (which == std::string_view::npos)
        return of.refuse("\"", key, "\" is \"", shown(name), "\"; it must be i, o or s");
    return static_cast<Buffer>(which);
}

Result<ChannelType> type_of(const Value& of, const char* key) {
    PCCL_ASSIGN_OR_RETURN(const std::string name, of.text(key));
    if (name == "memory") return ChannelType::kMemory;
    if (name == "port") return ChannelType::kPort;
    return of.cannot("\"", key, "\" is \"", shown(name),
                     "\"; capsules have what goes over memory and port channels");
}

/// What a GPU's thread blocks name by numbers.
struct Tables {
    struct Remote {
        Rank rank = 0;
        Buffer buffer{};
    };
    std::vector<Remote> remotes;
    std::map<ChannelType, std::vector<Channel>> channels;
};
/// The same of one thread block: numbers of those.
struct BlockTables {
    std::map<ChannelType, std::vector<Tables::Remote>> remotes;
    std::map<ChannelType, std::vector<Channel>> channels;
};

std::string label_of(Rank gpu, std::size_t block, std::size_t op, std::string_view name) {
    return concat("gpu ", gpu, ", threadblock ", block, ", op ", op, " (", name, ")");
}

class Reader {
   public:
    explicit Reader(std::string_view file) : file_(file) {}

    Result<Plan> read(const LinedJson& document) {
        const Value top(document, file_);
        Plan plan;
        PCCL_ASSIGN_OR_RETURN(plan.name, top.text("name"));
        PCCL_ASSIGN_OR_RETURN(const std::string protocol, top.text("protocol"));
        plan.protocol = msccl::protocol_called(protocol);
        PCCL_ASSIGN_OR_RETURN(const std::string collective, top.text("collective"));
        const auto kind = msccl::collective_called(collective);
        if (!kind)
            return top.cannot("\"collective\" is \"", shown(collective),
                              "\", which is none of PCCL's");
        plan.kind = *kind;
        PCCL_TRY(top.boolean("inplace", plan.in_place));
        constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
        PCCL_TRY(top.number<std::uint64_t>("min_message_size", 0, kMostSize, plan.sizes.least));
        PCCL_TRY(top.number<std::uint64_t>("max_message_size", 0, kMost, plan.sizes.most));
        if (plan.sizes.most > kMostSize) plan.sizes.most = kMost;  // no call has more than either
        if (plan.sizes.most < plan.sizes.least)
            return top.refuse("\"max_message_size\" is below \"min_message_size\"");
        PCCL_ASSIGN_OR_RETURN(const std::vector<Value> gpus,
                              top.list("gpus", schedule::kMostRanks));
        if (gpus.empty()) return top.refuse("has no \"gpus\"");
        ranks_ = static_cast<int>(gpus.size());
        for (const Value& gpu : gpus) PCCL_TRY(read_gpu(gpu, plan));
        return plan;
    }

   private:
    Status read_gpu(const Value& value, Plan& plan) {
        rank_ = static_cast<Rank>(plan.gpus.size());
        const Value gpu = value.called(concat("gpu ", rank_));
        int id = 0;
        PCCL_TRY(gpu.needed("id", 0, ranks_ - 1, id));
        if (id != rank_) return gpu.refuse("\"id\" is ", id, " where ", rank_, " follows");
        PCCL_TRY(read_chunks(gpu, plan));
        Gpu& made = plan.gpus.emplace_back(Gpu{.line = gpu.line()});
        PCCL_TRY(gpu.number("scratch_chunks", 0, kMostChunks, made.scratch_chunks));
        scratch_ += made.scratch_chunks;
        if (scratch_ > kMostPlaces)
            return gpu.refuse("the GPUs have more than ", kMostPlaces, " chunks of scratch");
        PCCL_ASSIGN_OR_RETURN(const std::vector<Value> semaphores,
                              gpu.list("semaphores", kMostNamed));
        for (const Value& each : semaphores) {
            made.semaphores.emplace_back();
            PCCL_TRY(each.number("init_value", 0, kMostChunks, made.semaphores.back()));
        }
        PCCL_ASSIGN_OR_RETURN(const Tables tables, tables_of(gpu));
        PCCL_ASSIGN_OR_RETURN(const std::vector<Value> blocks,
                              gpu.list("threadblocks", kMostBlocks));
        for (const Value& block : blocks) PCCL_TRY(read_block(block, tables, made));
        return Status::ok();
    }

    /// All GPUs have as many.
    Status read_chunks(const Value& gpu, Plan& plan) const {
        int chunks = 0;
        const std::array<std::pair<const char*, Buffer>, 2> sides{
            {{"input_chunks", Buffer::kInput}, {"output_chunks", Buffer::kOutput}}};
        for (const auto& [key, buffer] : sides) {
            int count = 0;
            PCCL_TRY(gpu.number(key, 0, kMostChunks, count));
            const int blocks = schedule::blocks(plan.kind, buffer, ranks_);
            if (count % blocks != 0)
                return gpu.refuse("\"", key, "\" is ", count, ", no multiple of ", blocks,
                                  " blocks");
            if (count == 0) continue;
            if (chunks != 0 && chunks != count / blocks)
                return gpu.refuse("\"", key, "\" is ", count,
                                  "; with the other chunks it would be ", chunks * blocks);
            chunks = count / blocks;
        }
        if (chunks == 0) return gpu.refuse("has neither \"input_chunks\" nor \"output_chunks\"");
        if (rank_ > 0 && chunks != plan.chunks)
            return gpu.refuse("has ", chunks, " chunks a block where gpu 0 has ", plan.chunks);
        plan.chunks = chunks;
        const int most = std::max(schedule::blocks(plan.kind, Buffer::kInput, ranks_),
                                  schedule::blocks(plan.kind, Buffer::kOutput, ranks_));
        if (static_cast<long long>(most) * chunks * ranks_ > kMostPlaces)
            return gpu.refuse("the GPUs have more chunks than are verified");
        return Status::ok();
    }

    Result<Tables> tables_of(const Value& gpu) const {
        Tables tables;
        PCCL_ASSIGN_OR_RETURN(const std::vector<Value> channels, gpu.list("channels", kMostNamed));
        for (const Value& each : channels) {
            PCCL_ASSIGN_OR_RETURN(const ChannelType type, type_of(each, "channel_type"));
            PCCL_ASSIGN_OR_RETURN(const auto peers, each.numbers("connected_to", ranks_ - 1));
            auto& known = tables.channels[type];
            for (const Rank peer : peers) {
                const auto nth = std::ranges::count(known, peer, &Channel::peer);
                known.push_back({type, peer, static_cast<int>(nth)});
            }
        }
        PCCL_ASSIGN_OR_RETURN(const std::vector<Value> remotes,
                              gpu.list("remote_buffers", kMostNamed));
        for (const Value& each : remotes) {
            Tables::Remote& remote = tables.remotes.emplace_back();
            PCCL_TRY(each.needed("rank", 0, ranks_ - 1, remote.rank));
            PCCL_ASSIGN_OR_RETURN(remote.buffer, buffer_of(each, "type"));
        }
        return tables;
    }

    Status read_block(const Value& block, const Tables& tables, Gpu& gpu) {
        BlockTables own;
        PCCL_ASSIGN_OR_RETURN(const auto channels, block.list("channels", kMostNamed));
        for (const Value& each : channels) {
            PCCL_ASSIGN_OR_RETURN(const ChannelType type, type_of(each, "channel_type"));
            const auto known = tables.channels.find(type);
            const int count =
                known == tables.channels.end() ? 0 : static_cast<int>(known->second.size());
            PCCL_ASSIGN_OR_RETURN(const auto ids, each.numbers("channel_ids", count - 1));
            for (const int id : ids)
                own.channels[type].push_back(known->second[static_cast<std::size_t>(id)]);
        }
        PCCL_ASSIGN_OR_RETURN(const auto refs, block.list("remote_buffer_refs", kMostNamed));
        for (const Value& each : refs) {
            PCCL_ASSIGN_OR_RETURN(const ChannelType type, type_of(each, "access_channel_type"));
            const int last = static_cast<int>(tables.remotes.size()) - 1;
            PCCL_ASSIGN_OR_RETURN(const auto ids, each.numbers("remote_buffer_ids", last));
            for (const int id : ids)
                own.remotes[type].push_back(tables.remotes[static_cast<std::size_t>(id)]);
        }
        PCCL_ASSIGN_OR_RETURN(const auto ops, block.list("ops", kMostOperations));
        const std::size_t number = gpu.blocks.size();
        ThreadBlock& made = gpu.blocks.emplace_back();
        for (const Value& each : ops) {
            if (++operations_ > kMostOperations)
                return block.refuse("the plan has more than ", kMostOperations, " operations");
            const std::string name = each.has("name") && each.get()["name"].is_string()
                                         ? each.get()["name"].get<std::string>()
                                         : "";
            const Value op = each.called(label_of(rank_, number, made.size(), shown(name)));
            PCCL_ASSIGN_OR_RETURN(Operation operation, operation_of(op, name, own));
            made.push_back(std::move(operation));
        }
        return Status::ok();
    }

    Result<Operation> operation_of(const Value& op, std::string_view name,
                                   const BlockTables& tables) {
        const auto* const known = std::ranges::find(kInstructions, name, &Instruction::name);
        if (known == kInstructions.end())
            return op.cannot("this instruction has no form in a capsule");
        if (op.has("tbg_info"))
            return op.cannot("thread blocks that share an operation have no form in a capsule");
        if (op.has("reduce_op") && op.get()["reduce_op"] != "sum")
            return op.cannot("\"reduce_op\" is ", op.shown_at("reduce_op"),
                             "; callers of a capsule choose, and plans say sum");
        Operation made{.name = known->name,
                       .line = op.line(),
                       .kind = known->kind,
                       .reads_packets = known->reads_packets,
                       .writes_packets = known->writes_packets,
                       .signals = known->signals};
        ChannelType type{};
        if (op.has("channel_type") && op.get()["channel_type"] != "none") {
            PCCL_ASSIGN_OR_RETURN(type, type_of(op, "channel_type"));
        }
        PCCL_TRY(read_all(op, "src_buff", type, tables, made.src));
        PCCL_TRY(read_all(op, "dst_buff", type, tables, made.dst));
        PCCL_TRY(read_channels(op, type, tables, made));
        if (made.kind == Kind::kBarrier) {
            made.ids.emplace_back();
            PCCL_TRY(op.needed("barrier_id", 0, kMostChunks, made.ids.back()));
        } else {
            PCCL_ASSIGN_OR_RETURN(made.ids, op.numbers("semaphore_ids", kMostChunks));
        }
        PCCL_TRY(check_operands(op, made));
        return made;
    }

    Status read_channels(const Value& op, ChannelType type, const BlockTables& tables,
                         Operation& made) const {
        const auto known = tables.channels.find(type);
        const int count =
            known == tables.channels.end() ? 0 : static_cast<int>(known->second.size());
        PCCL_ASSIGN_OR_RETURN(const auto ids, op.numbers("channel_ids", count - 1));
        for (const int id : ids)
            made.channels.push_back(known->second[static_cast<std::size_t>(id)]);
        const bool needs = made.kind == Kind::kSignal || made.kind == Kind::kWait || made.signals;
        return needs && ids.empty() ? op.refuse("names no \"channel_ids\"") : Status::ok();
    }

    Status read_all(const Value& op, const char* key, ChannelType type, const BlockTables& tables,
                    std::vector<Chunks>& chunks) {
        PCCL_ASSIGN_OR_RETURN(const std::vector<Value> all, op.list(key, kMostNamed));
        for (const Value& each : all) {
            if (each.has("switch_channel_id"))
                return op.cannot("switches that reduce have no form in a capsule");
            Chunks made{.rank = rank_};
            if (each.has("buffer_id")) {
                const auto known = tables.remotes.find(type);
                const int count =
                    known == tables.remotes.end() ? 0 : static_cast<int>(known->second.size());
                int id = 0;
                PCCL_TRY(each.needed("buffer_id", 0, count - 1, id));
                const Tables::Remote& remote = known->second[static_cast<std::size_t>(id)];
                made.rank = remote.rank;
                made.buffer = remote.buffer;
            } else {
                PCCL_ASSIGN_OR_RETURN(made.buffer, buffer_of(each, "type"));
            }
            PCCL_TRY(each.needed("index", 0, kMostChunks, made.index));
            PCCL_TRY(each.needed("size", 1, kMostChunks, made.size));
            counted_ += made.size;
            if (counted_ > kMostCounted)
                return op.refuse("the plan's operations name more than ", kMostCounted, " chunks");
            chunks.push_back(made);
        }
        return Status::ok();
    }

    Status check_operands(const Value& op, const Operation& made) const {
        if (made.kind != Kind::kMove && made.kind != Kind::kReduce) {
            if (made.src.empty() && made.dst.empty()) return Status::ok();
            return op.refuse("moves nothing, but has src_buff or dst_buff");
        }
        if (made.src.empty() || made.dst.empty()) return op.refuse("has no src_buff or dst_buff");
        if (made.kind == Kind::kMove && made.src.size() != made.dst.size())
            return op.refuse("has ", made.src.size(), " src_buff and ", made.dst.size(),
                             " dst_buff");
        if (made.kind == Kind::kReduce && made.dst.front().rank != rank_)
            return op.refuse("reduces into the memory of another GPU");
        for (const auto* side : {&made.src, &made.dst})
            for (const Chunks& chunks : *side)
                if (chunks.size != made.src.front().size)
                    return op.refuse("has chunks of sizes ", made.src.front().size, " and ",
                                     chunks.size);
        return Status::ok();
    }

    std::string_view file_;
    int ranks_ = 0;
    Rank rank_ = 0;
    long long scratch_ = 0;
    long long counted_ = 0;
    std::size_t operations_ = 0;
};

}  // namespace

std::string place_of(std::string_view file, Rank gpu, std::size_t block, std::size_t op,
                     const Operation& operation) {
    return concat(file, ":", operation.line, ": ", label_of(gpu, block, op, operation.name));
}

Result<Plan> read_plan(std::string_view text, std::string_view file) {
    if (text.size() > kMostBytes)
        return Status::invalid_argument(concat(file, ": has more than ", kMostBytes, " bytes"));
    PCCL_ASSIGN_OR_RETURN(const LinedJson document, LinedJson::parse(text, file));
    return Reader(file).read(document);
}

}  // namespace pccl::capsule::mscclpp
