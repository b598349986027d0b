// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/read_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/msccl/algo.h"
#include "csrc/capsule/mscclpp/plan_value.h"
#include "csrc/capsule/mscclpp/read_operations.h"

namespace pccl::capsule::mscclpp {
namespace {

using schedule::Buffer;
using sys::shown;

constexpr std::size_t kMostBytes = 8U << 20U;
constexpr int kMostChunks = 1 << 20;
constexpr int kMostBlocks = 1024;

class MscclppReader {
   public:
    explicit MscclppReader(std::string_view file) : file_(file) {}

    Result<MscclppPlan> read(const LinedJson& document) {
        const PlanValue top(document, file_);
        MscclppPlan plan;
        plan.file = file_;
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
        PCCL_TRY(read_sizes(top, plan));
        PCCL_ASSIGN_OR_RETURN(const std::vector<PlanValue> gpus,
                              top.list("gpus", schedule::kMostRanks));
        if (gpus.empty()) return top.refuse("has no \"gpus\"");
        PCCL_TRY(check_version(gpus.front()));
        ranks_ = static_cast<int>(gpus.size());
        for (const PlanValue& gpu : gpus) PCCL_TRY(read_gpu(gpu, plan));
        PCCL_TRY(check_places(plan));
        return plan;
    }

   private:
    static Status read_sizes(const PlanValue& top, MscclppPlan& plan) {
        constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
        PCCL_TRY(top.number<std::uint64_t>("min_message_size", 0, kMostSize, plan.sizes.least));
        PCCL_TRY(top.number<std::uint64_t>("max_message_size", 0, kMost, plan.sizes.most));
        if (plan.sizes.most > kMostSize) plan.sizes.most = kMost;  // no call exceeds either limit
        if (plan.sizes.most < plan.sizes.least)
            return top.refuse("\"max_message_size\" is below \"min_message_size\"");
        return Status::ok();
    }

    /// Plans have no format version; the format changed with MSCCL++ 0.8.
    static Status check_version(const PlanValue& gpu) {
        if (!gpu.has("inputChunks") && !gpu.has("chunkGroups")) return Status::ok();
        return gpu.called("gpu 0").cannot(
            "has \"inputChunks\", so the plan is of MSCCL++ before 0.8; write it again with the "
            "language of 0.8 or later, which has \"input_chunks\"");
    }

    Status read_gpu(const PlanValue& value, MscclppPlan& plan) {
        const auto rank = static_cast<Rank>(plan.gpus.size());
        const PlanValue gpu = value.called(concat("gpu ", rank));
        int id = 0;
        PCCL_TRY(gpu.needed("id", 0, ranks_ - 1, id));
        if (id != rank) return gpu.refuse("\"id\" is ", id, " where ", rank, " follows");
        PCCL_TRY(read_chunks(gpu, plan));
        PlanGpu& made = plan.gpus.emplace_back(PlanGpu{.line = gpu.line()});
        PCCL_TRY(gpu.number("scratch_chunks", 0, kMostChunks, made.scratch_chunks));
        scratch_ += made.scratch_chunks;
        if (scratch_ > kMostPlaces)
            return gpu.refuse("the GPUs have more than ", kMostPlaces, " chunks of scratch");
        PCCL_ASSIGN_OR_RETURN(const std::vector<PlanValue> semaphores,
                              gpu.list("semaphores", PlanValue::kMostNamed));
        for (const PlanValue& each : semaphores)
            PCCL_TRY(each.number("init_value", 0, kMostChunks, made.semaphores.emplace_back()));
        PCCL_ASSIGN_OR_RETURN(const GpuTables tables, tables_of_gpu(gpu, ranks_));
        PCCL_ASSIGN_OR_RETURN(const std::vector<PlanValue> blocks,
                              gpu.list("threadblocks", kMostBlocks));
        for (const PlanValue& block : blocks) {
            PCCL_ASSIGN_OR_RETURN(ThreadBlock operations,
                                  operations_.read_block(block, rank, made.blocks.size(), tables));
            made.blocks.push_back(std::move(operations));
        }
        return Status::ok();
    }

    /// Reads the chunks, whose number is the same on all GPUs.
    Status read_chunks(const PlanValue& gpu, MscclppPlan& plan) const {
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
        if (!plan.gpus.empty() && chunks != plan.chunks)
            return gpu.refuse("has ", chunks, " chunks a block where gpu 0 has ", plan.chunks);
        plan.chunks = chunks;
        const int most = std::max(schedule::blocks(plan.kind, Buffer::kInput, ranks_),
                                  schedule::blocks(plan.kind, Buffer::kOutput, ranks_));
        if (static_cast<long long>(most) * chunks * ranks_ > kMostPlaces)
            return gpu.refuse("the GPUs have more chunks than are verified");
        return Status::ok();
    }

    /// Checks that each operation uses existing chunks.
    static Status check_places(const MscclppPlan& plan) {
        for (const At& at : all_operations(plan))
            for (const auto* side : {&plan.operation(at).src, &plan.operation(at).dst})
                for (const Chunks& chunks : *side) {
                    const int count = plan.chunks_in(chunks.rank, chunks.buffer);
                    if (chunks.index <= count && chunks.size <= count - chunks.index) continue;
                    return Status::invalid_argument(concat(
                        plan.place_of(at), ": chunks ", chunks.index, " to ",
                        chunks.index + chunks.size - 1, " are not in ", to_string(chunks.buffer),
                        " of gpu ", chunks.rank, ", which has ", count));
                }
        return Status::ok();
    }

    std::string_view file_;
    int ranks_ = 0;
    long long scratch_ = 0;
    OperationReader operations_;
};

}  // namespace

Result<MscclppPlan> read_plan(std::string_view text, std::string_view file) {
    if (text.size() > kMostBytes)
        return Status::invalid_argument(concat(file, ": has more than ", kMostBytes, " bytes"));
    PCCL_ASSIGN_OR_RETURN(const LinedJson document, LinedJson::parse(text, file));
    return MscclppReader(file).read(document);
}

}  // namespace pccl::capsule::mscclpp
