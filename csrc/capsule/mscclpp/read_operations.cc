// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/read_operations.h"

#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::capsule::mscclpp {
namespace {

using sys::shown;

constexpr int kMostIndex = 1 << 20;
constexpr int kMostParts = 1024;  // of an operation that thread blocks share
constexpr std::size_t kMostOperations = 1U << 18U;
// Limit over all operations, so that a traversal takes bounded time.
constexpr long long kMostCounted = 1LL << 24U;

void mark(std::vector<Chunks>& all, PacketChunks packets) {
    for (std::size_t i = packets == PacketChunks::kAllButFirst ? 1 : 0; i < all.size(); ++i)
        all[i].are_packets = packets != PacketChunks::kNone;
}

Status over_a_switch(const PlanValue& op) {
    return op.cannot("needs a switch channel (multicast); capsules have memory and port channels");
}

Status read_share(const PlanValue& op, Share& share) {
    if (!op.has("tbg_info")) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const PlanValue info, op.object("tbg_info"));
    PCCL_TRY(info.needed("tbg_size", 1, kMostParts, share.parts));
    return info.needed("tb_id", 0, share.parts - 1, share.part);
}

Status read_channels(const PlanValue& op, ChannelType type, const BlockTables& tables,
                     const Instruction& instruction, PlanOperation& made) {
    const auto known = tables.channels.find(type);
    const int count = known == tables.channels.end() ? 0 : static_cast<int>(known->second.size());
    PCCL_ASSIGN_OR_RETURN(const auto ids, op.numbers("channel_ids", count - 1));
    for (const int id : ids) made.channels.push_back(known->second[static_cast<std::size_t>(id)]);
    const bool needs = instruction.kind == InstructionKind::kSignal ||
                       instruction.kind == InstructionKind::kWait || instruction.signals;
    return needs && ids.empty() ? op.refuse("names no \"channel_ids\"") : Status::ok();
}

Status check_operands(const PlanValue& op, const PlanOperation& made, Rank gpu) {
    if (made.kind != InstructionKind::kMove && made.kind != InstructionKind::kReduce) {
        if (made.src.empty() && made.dst.empty()) return Status::ok();
        return op.refuse("moves nothing, but has src_buff or dst_buff");
    }
    if (made.src.empty() || made.dst.empty()) return op.refuse("has no src_buff or dst_buff");
    if (made.kind == InstructionKind::kMove && made.src.size() != made.dst.size())
        return op.refuse("has ", made.src.size(), " src_buff and ", made.dst.size(), " dst_buff");
    if (made.kind == InstructionKind::kReduce && made.dst.front().rank != gpu)
        return op.refuse("reduces into the memory of another GPU");
    for (std::size_t i = 0; made.kind == InstructionKind::kMove && i < made.src.size(); ++i)
        if (made.src[i].rank != gpu && made.dst[i].rank != gpu)
            return op.refuse("moves chunks between two other GPUs");
    for (const auto* side : {&made.src, &made.dst})
        for (const Chunks& chunks : *side)
            if (chunks.size != made.src.front().size)
                return op.refuse("has chunks of sizes ", made.src.front().size, " and ",
                                 chunks.size);
    return Status::ok();
}

}  // namespace

Result<ThreadBlock> OperationReader::read_block(const PlanValue& block, Rank gpu,
                                                std::size_t number, const GpuTables& tables) {
    PCCL_ASSIGN_OR_RETURN(const BlockTables own, tables_of_block(block, tables));
    ThreadBlock made;
    PCCL_TRY(read_all(block, {.gpu = gpu, .block = number, .tables = own}, made));
    return made;
}

Status OperationReader::read_all(const PlanValue& of, const Within& within, ThreadBlock& made) {
    PCCL_ASSIGN_OR_RETURN(const auto ops, of.list("ops", kMostOperations));
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (++operations_ > kMostOperations)
            return of.refuse("the plan has more than ", kMostOperations, " operations");
        const PlanValue& each = ops[i];
        const std::string name = each.has("name") && each.get()["name"].is_string()
                                     ? each.get()["name"].get<std::string>()
                                     : "";
        const std::string number = concat(within.prefix, i);
        const PlanValue op = each.called(label_of(within.gpu, within.block, number, shown(name)));
        if (name == "pipeline") {
            PCCL_TRY(read_loop(op, within, number, made));
            continue;
        }
        if (needs_switch(name)) return over_a_switch(op);
        const Instruction* const instruction = instruction_called(name);
        if (instruction == nullptr) return op.cannot("is no instruction that capsules have");
        PCCL_ASSIGN_OR_RETURN(PlanOperation operation, read(op, within, *instruction));
        operation.number = number;
        made.push_back(std::move(operation));
    }
    return Status::ok();
}

/// Reads a loop as one iteration. A loop processes its chunks in units of bytes. Data of one unit
/// takes one iteration; for larger data, the executor of a capsule cuts the data into windows.
Status OperationReader::read_loop(const PlanValue& op, const Within& within,
                                  const std::string& number, ThreadBlock& made) {
    if (within.is_loop()) return op.refuse("is in another pipeline");
    PCCL_ASSIGN_OR_RETURN(const PlanValue context, op.object("iter_context"));
    Within loop{.gpu = within.gpu,
                .block = within.block,
                .tables = within.tables,
                .prefix = concat(number, ".")};
    PCCL_TRY(context.needed("num_chunks", 1, kMostIndex, loop.loop_chunks));
    return read_all(op, loop, made);
}

Result<PlanOperation> OperationReader::read(const PlanValue& op, const Within& within,
                                            const Instruction& instruction) {
    if (op.has("reduce_op") && op.get()["reduce_op"] != "sum")
        return op.cannot(
            "\"reduce_op\" is ", op.shown_at("reduce_op"),
            "; callers choose the reduction of a capsule, so a plan must have \"sum\"");
    PlanOperation made{.name = instruction.name,
                       .number = {},
                       .line = op.line(),
                       .kind = instruction.kind,
                       .signals = instruction.signals};
    PCCL_TRY(read_share(op, made.share));
    PCCL_TRY(read_moved(op, within, instruction, made));
    if (made.kind == InstructionKind::kBarrier) {
        PCCL_TRY(op.needed("barrier_id", 0, kMostIndex, made.ids.emplace_back()));
        PCCL_TRY(op.needed("num_threadblocks", 1, kMostIndex, made.blocks_to_meet));
    } else {
        PCCL_ASSIGN_OR_RETURN(made.ids, op.numbers("semaphore_ids", kMostIndex));
    }
    return made;
}

Status OperationReader::read_moved(const PlanValue& op, const Within& within,
                                   const Instruction& instruction, PlanOperation& made) {
    ChannelType type{};
    if (op.has("channel_type") && op.get()["channel_type"] != "none") {
        PCCL_ASSIGN_OR_RETURN(type, type_of(op, "channel_type"));
    }
    if (type == ChannelType::kSwitch) return over_a_switch(op);
    PCCL_TRY(read_chunks(op, "src_buff", within, type, made.src));
    PCCL_TRY(read_chunks(op, "dst_buff", within, type, made.dst));
    if (instruction.forwards && made.src.size() == 1)
        made.src.resize(made.dst.size(), Chunks(made.src.front()));
    PCCL_TRY(read_channels(op, type, within.tables, instruction, made));
    PCCL_TRY(check_operands(op, made, within.gpu));
    mark(made.src, instruction.read);
    mark(made.dst, instruction.written);
    if (within.is_loop() && !made.src.empty() && made.src.front().size != within.loop_chunks)
        return op.cannot("moves ", made.src.front().size, " chunks in a pipeline that goes over ",
                         within.loop_chunks);
    return Status::ok();
}

Status OperationReader::read_chunks(const PlanValue& op, const char* key, const Within& within,
                                    ChannelType type, std::vector<Chunks>& chunks) {
    PCCL_ASSIGN_OR_RETURN(const std::vector<PlanValue> all, op.list(key, PlanValue::kMostNamed));
    for (const PlanValue& each : all) {
        if (each.has("switch_channel_id")) return over_a_switch(op);
        Chunks made{.rank = within.gpu};
        if (each.has("buffer_id")) {
            const auto known = within.tables.remotes.find(type);
            const int count =
                known == within.tables.remotes.end() ? 0 : static_cast<int>(known->second.size());
            int id = 0;
            PCCL_TRY(each.needed("buffer_id", 0, count - 1, id));
            const RemoteBuffer& remote = known->second[static_cast<std::size_t>(id)];
            made.rank = remote.rank;
            made.buffer = remote.buffer;
        } else {
            PCCL_ASSIGN_OR_RETURN(made.buffer, buffer_of(each, "type"));
        }
        PCCL_TRY(each.needed("index", 0, kMostIndex, made.index));
        PCCL_TRY(each.needed("size", 1, kMostIndex, made.size));
        counted_ += made.size;
        if (counted_ > kMostCounted)
            return op.refuse("the plan's operations name more than ", kMostCounted, " chunks");
        chunks.push_back(made);
    }
    return Status::ok();
}

}  // namespace pccl::capsule::mscclpp
