#include "csrc/capsule/mscclpp/two_sided.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/mscclpp/meetings.h"

namespace pccl::capsule::mscclpp {
namespace {

using msccl::Algo;
using msccl::Span;
using msccl::Step;
using schedule::Action;

// Of thread blocks for each other, at barriers and semaphores.
constexpr std::size_t kMostWaits = 1U << 18U;

/// Where in the plan a step comes from.
msccl::Origin origin_of(std::vector<At>& places, const At& at) {
    places.push_back(at);
    return static_cast<msccl::Origin>(places.size()) - 1;
}

Span span_of(const Chunks& chunks) { return {chunks.buffer, chunks.index}; }

/// What a step waits for that is not there yet: all that a thread block does before an operation.
struct Wait {
    std::size_t block = 0;
    std::size_t step = 0;
    At before{};
};

/// The programs of one plan, one operation after the other.
class Translation {
   public:
    Translation(const Plan& plan, const Meetings& meetings, std::vector<At>& places)
        : plan_(plan), meetings_(meetings), places_(places) {}

    Result<msccl::Gpu> gpu(Rank rank) {
        const Gpu& gpu = plan_.gpus[static_cast<std::size_t>(rank)];
        made_ = {.origin = origin_of(places_, {rank, 0, 0}),
                 .scratch_chunks = gpu.scratch_chunks,
                 .blocks = {}};
        barriers_.clear();
        releases_.clear();
        acquired_.clear();
        for (std::size_t block = 0; block < gpu.blocks.size(); ++block) note_points(rank, block);
        first_step_.assign(gpu.blocks.size(), {});
        for (std::size_t block = 0; block < gpu.blocks.size(); ++block) {
            turns_.clear();
            made_.blocks.emplace_back();
            for (std::size_t op = 0; op < gpu.blocks[block].size(); ++op) {
                at_ = {rank, block, op};
                first_step_[block].push_back(steps().size());
                PCCL_TRY(perform(gpu.blocks[block][op]));
            }
        }
        resolve_waits();
        return std::move(made_);
    }

    /// The operation at hand.
    [[nodiscard]] const At& at() const { return at_; }

   private:
    /// A barrier of a GPU, and how often its thread blocks have been there.
    using Turn = std::pair<int, int>;

    std::vector<Step>& steps() { return made_.blocks.back().steps; }

    void note_points(Rank rank, std::size_t block) {
        const ThreadBlock& operations = plan_.gpus[static_cast<std::size_t>(rank)].blocks[block];
        std::map<int, int> turns;
        for (std::size_t op = 0; op < operations.size(); ++op)
            for (const int id : operations[op].ids) {
                const At here{rank, block, op};
                if (operations[op].kind == Kind::kBarrier)
                    barriers_[{id, turns[id]++}].push_back(here);
                if (operations[op].kind == Kind::kRelease) releases_[id].push_back(here);
            }
    }

    Status perform(const Operation& operation) {
        for (const Delivery& each : meetings_.received_by(at_, false)) receive(each);
        if (operation.kind == Kind::kBarrier) PCCL_TRY(await_barrier(operation.ids.front()));
        if (operation.kind == Kind::kAcquire)
            for (const int id : operation.ids) PCCL_TRY(await_release(id));
        if (operation.kind == Kind::kMove) move(operation);
        if (operation.kind == Kind::kReduce) reduce(operation);
        for (const Delivery& each : meetings_.sent_by(at_, false)) send(each);
        for (const Delivery& each : meetings_.sent_by(at_, true)) send(each);
        return Status::ok();
    }

    Step& add(Action action, const Span& src, const Span& dst, int count) {
        steps().push_back({.origin = origin_of(places_, at_),
                           .action = action,
                           .src = src,
                           .dst = dst,
                           .count = count});
        return steps().back();
    }
    void send(const Delivery& each) {
        add(Action::kSend, span_of(each.src), {}, each.src.size).to = {each.dst.rank,
                                                                       channel_of(each)};
    }
    void receive(const Delivery& each) {
        add(Action::kRecv, {}, span_of(each.dst), each.dst.size).from = {each.sent.gpu,
                                                                         channel_of(each)};
    }

    /// Each pair of thread blocks has its own, so that one lane is at each end.
    ChannelId channel_of(const Delivery& each) {
        auto& known = channels_[{each.sent.gpu, each.received.gpu}];
        return known
            .try_emplace({each.sent.block, each.received.block}, static_cast<int>(known.size()))
            .first->second;
    }

    void move(const Operation& operation) {
        for (std::size_t i = 0; i < operation.src.size(); ++i)
            if (operation.src[i].rank == at_.gpu && operation.dst[i].rank == at_.gpu)
                add(Action::kCopy, span_of(operation.src[i]), span_of(operation.dst[i]),
                    operation.src[i].size);
        for (const Delivery& each : meetings_.received_by(at_, true)) receive(each);
    }

    /// Into the first of dst, beginning with what is there already, where that is one of src.
    void reduce(const Operation& operation) {
        const Chunks& sum = operation.dst.front();
        std::vector<Chunks> own;
        std::ranges::copy_if(operation.src, std::back_inserter(own), [&](const Chunks& each) {
            return each.rank == at_.gpu && each != sum;
        });
        const bool has_sum = std::ranges::find(operation.src, sum) != operation.src.end();
        const std::vector<Delivery> reads = meetings_.received_by(at_, true);
        std::optional<Span> begun;
        if (has_sum) begun = span_of(sum);
        auto next = own.begin();
        if (!begun && next != own.end()) {
            begun = span_of(*next++);
            if (reads.empty()) add(Action::kCopy, *begun, span_of(sum), sum.size);
        }
        for (const Delivery& each : reads) {
            Step& step = add(begun ? Action::kRecvReduce : Action::kRecv, begun.value_or(Span{}),
                             span_of(sum), sum.size);
            step.from = {each.sent.gpu, channel_of(each)};
            begun = span_of(sum);
        }
        for (; next != own.end(); ++next)
            add(Action::kReduce, span_of(*next), span_of(sum), sum.size);
        for (std::size_t i = 1; i < operation.dst.size(); ++i)
            if (operation.dst[i].rank == at_.gpu)
                add(Action::kCopy, span_of(sum), span_of(operation.dst[i]), sum.size);
    }

    Status await(const At& before) {
        if (++waits_made_ > kMostWaits)
            return Status::unsupported(
                concat("thread blocks wait for each other more than ", kMostWaits, " times"));
        add(Action::kNop, {}, {}, 0);
        waits_.push_back({at_.block, steps().size() - 1, before});
        return Status::ok();
    }

    /// As often as this thread block has been at it, all others have.
    Status await_barrier(int id) {
        for (const At& point : barriers_[{id, turns_[id]++}])
            if (point.block != at_.block) PCCL_TRY(await(point));
        return Status::ok();
    }

    Status await_release(int id) {
        const Gpu& gpu = plan_.gpus[static_cast<std::size_t>(at_.gpu)];
        const int free = std::cmp_less(id, gpu.semaphores.size())
                             ? gpu.semaphores[static_cast<std::size_t>(id)]
                             : 0;
        const std::vector<At>& releases = releases_[id];
        const int turn = acquired_[id]++ - free;
        if (turn < 0) return Status::ok();
        if (std::cmp_greater_equal(turn, releases.size()))
            return Status::invalid_argument(
                concat("semaphore ", id, " of gpu ", at_.gpu, " is acquired ", turn + 1 + free,
                       " times, and free ", free + static_cast<int>(releases.size()), " times"));
        if (const At& release = releases[static_cast<std::size_t>(turn)];
            release.block != at_.block)
            return await(release);
        return Status::ok();
    }

    void resolve_waits() {
        for (const Wait& wait : std::exchange(waits_, {})) {
            const std::size_t steps = first_step_[wait.before.block][wait.before.op];
            if (steps > 0)
                made_.blocks[wait.block].steps[wait.step].after = {
                    static_cast<int>(wait.before.block), static_cast<int>(steps) - 1};
        }
    }

    const Plan& plan_;
    const Meetings& meetings_;
    std::vector<At>& places_;
    msccl::Gpu made_;
    At at_;
    std::map<Turn, std::vector<At>> barriers_;  // of the GPU at hand
    std::map<int, std::vector<At>> releases_;   // by semaphore of it
    std::map<int, int> acquired_;               // by semaphore
    std::map<int, int> turns_;                  // by barrier, of the thread block at hand
    std::size_t waits_made_ = 0;
    std::vector<std::vector<std::size_t>> first_step_;  // by block and operation
    std::vector<Wait> waits_;
    std::map<std::pair<Rank, Rank>, std::map<std::pair<std::size_t, std::size_t>, int>> channels_;
};

std::string place_in(const Plan& plan, const std::string& file, const At& at) {
    const Gpu& gpu = plan.gpus[static_cast<std::size_t>(at.gpu)];
    if (at.block >= gpu.blocks.size() || at.op >= gpu.blocks[at.block].size())
        return concat(file, ":", gpu.line, ": gpu ", at.gpu);
    return place_of(file, at.gpu, at.block, at.op, gpu.blocks[at.block][at.op]);
}

}  // namespace

Result<Algo> two_sided(const Plan& plan, const std::string& file) {
    PCCL_ASSIGN_OR_RETURN(const Meetings meetings, Meetings::make(plan, file));
    std::vector<At> places;
    Translation translation(plan, meetings, places);
    Algo algo{.name = plan.name,
              .protocol = plan.protocol,
              .kind = plan.kind,
              .chunks = plan.chunks,
              .in_place = plan.in_place,
              .sizes = plan.sizes,
              .gpus = {},
              .origin = -1,
              .place = {}};
    for (Rank rank = 0; std::cmp_less(rank, plan.gpus.size()); ++rank) {
        auto gpu = translation.gpu(rank);
        if (!gpu.is_ok()) return gpu.status().with_context(place_in(plan, file, translation.at()));
        algo.gpus.push_back(std::move(gpu).value());
    }
    algo.place = [&plan, file, places = std::move(places)](msccl::Origin origin) {
        return origin < 0 ? file : place_in(plan, file, places[static_cast<std::size_t>(origin)]);
    };
    return algo;
}

}  // namespace pccl::capsule::mscclpp
