// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/import.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <pccl/status.h>
#include "csrc/base/text/text.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/msccl/convert.h"
#include "csrc/capsule/mscclpp/plan.h"
#include "csrc/capsule/mscclpp/read_plan.h"
#include "csrc/capsule/mscclpp/run.h"
#include "csrc/capsule/mscclpp/two_sided.h"

namespace pccl::capsule {
namespace mscclpp {
namespace {

using schedule::Buffer;

Status too_many(const MscclppPlan& plan, const At& at) {
    return Status::unsupported(concat(plan.place_of(at), ": shared by ",
                                      plan.operation(at).share.parts,
                                      " thread blocks, it cuts chunks into more than a capsule may "
                                      "have"));
}

/// Returns the chunks in the buffers of all GPUs.
long long places_of(const MscclppPlan& plan) {
    long long places = 0;
    for (Rank rank = 0; rank < static_cast<Rank>(plan.gpus.size()); ++rank)
        places +=
            plan.chunks_in(rank, Buffer::kScratch) +
            std::max(plan.chunks_in(rank, Buffer::kInput), plan.chunks_in(rank, Buffer::kOutput));
    return places;
}

/// Returns the number of pieces into which each chunk is cut.
Result<int> pieces_of(const MscclppPlan& plan, const std::vector<At>& operations) {
    const long long places = places_of(plan);
    long long pieces = 1;
    for (const At& at : operations) {
        const PlanOperation& operation = plan.operation(at);
        const int parts = operation.share.parts;
        if (parts == 1 || operation.src.empty()) continue;
        pieces = std::lcm(pieces, parts / std::gcd(parts, operation.src.front().size));
        if (pieces * places > kMostPlaces) return too_many(plan, at);
    }
    return static_cast<int>(pieces);
}

/// Selects a thread block's part of chunks that are cut into pieces.
void cut(std::vector<Chunks>& all, const Share& share, int pieces) {
    for (Chunks& chunks : all) {
        const int size = static_cast<int>(1LL * chunks.size * pieces / share.parts);
        chunks.index = chunks.index * pieces + share.part * size;
        chunks.size = size;
    }
}

/// Cuts all chunks of a plan into smaller chunks, so that each thread block of a group has whole
/// chunks of each shared operation. kUnsupported: a capsule cannot have that many chunks.
Status cut_into_shares(MscclppPlan& plan) {
    const std::vector<At> operations = all_operations(plan);
    PCCL_ASSIGN_OR_RETURN(const int pieces, pieces_of(plan, operations));
    long long moved = 0;
    for (const At& at : operations) {
        PlanOperation& operation =
            plan.gpus[static_cast<std::size_t>(at.gpu)].blocks[at.block][at.op];
        cut(operation.src, operation.share, pieces);
        cut(operation.dst, operation.share, pieces);
        for (const Chunks& chunks : operation.dst) moved += chunks.size;
        if (pieces > 1 && moved > kMostMoved) return too_many(plan, at);
    }
    plan.chunks *= pieces;
    for (PlanGpu& gpu : plan.gpus) gpu.scratch_chunks *= pieces;
    return Status::ok();
}

}  // namespace
}  // namespace mscclpp

namespace {

/// Returns the result of `convert` for a plan's program.
template <typename Made>
Result<Made> converted(std::string_view json, std::string_view file,
                       const std::function<Result<Made>(const msccl::Algo&)>& convert) {
    PCCL_ASSIGN_OR_RETURN(mscclpp::MscclppPlan plan, mscclpp::read_plan(json, file));
    PCCL_TRY(mscclpp::cut_into_shares(plan));
    PCCL_ASSIGN_OR_RETURN(const mscclpp::RunResult execution, mscclpp::execute(plan));
    return convert(mscclpp::two_sided(plan, execution));
}

}  // namespace

Result<VerifiedCapsule> import_mscclpp(std::string_view json, std::string_view file,
                                       std::string_view name) {
    return converted<VerifiedCapsule>(json, file, [&](const msccl::Algo& algo) {
        return msccl::capsule_of(algo, name, "imported from an MSCCL++ plan");
    });
}

Result<schedule::Schedule> unproven_mscclpp(std::string_view json, std::string_view file) {
    return converted<schedule::Schedule>(json, file, msccl::unproven_schedule_of);
}

}  // namespace pccl::capsule
