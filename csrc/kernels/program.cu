// Runs a schedule's program: each block is one worker of one lane (abi/device_program.h).
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/fifo.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

template <typename Reduction>
struct RunArguments {
    Run run;
    Reduction reduction;
};

/// How a worker cuts its part of a block: into windows, and those into chunks.
struct Cut {
    Range part;
    std::size_t window;
    std::size_t longest;  // chunk
    int chunks;

    __device__ Cut(const Run& run, int worker)
        : part(share_of(run.bytes, worker, run.program.workers)),
          window(run.program.chunk_bytes * run.program.chunks),
          longest(run.program.chunk_bytes),
          chunks(run.program.chunks) {}

    [[nodiscard]] __device__ std::size_t windows() const {
        return (part.bytes + window - 1) / window;
    }
    /// Of a block, chunk `index` of window `at`; the last ones may be shorter, or empty.
    [[nodiscard]] __device__ Range chunk(std::size_t at, int index) const {
        const std::size_t begin = at * window;
        const Range in_window = share_of(min(window, part.bytes - begin), index, chunks);
        return {part.begin + begin + in_window.begin, in_window.bytes};
    }
};

__device__ __forceinline__ std::size_t aligned(std::size_t bytes) {
    return (bytes + abi::kChunkAlignment - 1) / abi::kChunkAlignment * abi::kChunkAlignment;
}

template <typename Reduction>
class Worker {
   public:
    __device__ Worker(const Run& run, const Reduction& reduction, Port* ports)
        : run_(run),
          program_(run.program),
          reduction_(reduction),
          lane_(program_.lanes[static_cast<int>(blockIdx.x) / program_.workers]),
          worker_(static_cast<int>(blockIdx.x) % program_.workers),
          cut_(run, worker_),
          ports_(ports) {}

    __device__ void work(const Visit::Addresses& desks) {
        open_ports(desks);
        const std::size_t windows = cut_.windows();
        for (std::size_t window = 0; window < windows; ++window)
            if (!run_window(window)) break;
        close_ports();
    }

   private:
    __device__ void open_ports(const Visit::Addresses& desks) {
        const int index = static_cast<int>(threadIdx.x);
        if (index < lane_.ports) {
            const abi::DevicePort& port = program_.ports[lane_.first_port + index];
            auto* const there =
                reinterpret_cast<abi::DeviceDesk*>(const_cast<std::byte*>(desks.inputs[port.peer]));
            ports_[index].open(port, run_.team.rank, port.channel * program_.workers + worker_,
                               program_.desk, there);
        }
        __syncthreads();
    }
    __device__ void close_ports() const {
        __syncthreads();
        const int index = static_cast<int>(threadIdx.x);
        if (index < lane_.ports) ports_[index].close();
    }

    __device__ bool run_window(std::size_t window) {
        const bool shares_scratch = program_.is_coupled != 0 && program_.scratch_chunks > 0;
        if (shares_scratch && window > 0 && !await_window(window)) return false;
        const std::size_t done = window * lane_.steps;
        for (int index = 0; index < lane_.steps; ++index)
            if (!run_step(program_.steps[lane_.first_step + index], window, done + index + 1))
                return false;
        return true;
    }

    /// All lanes have finished the window before: the next one uses the same scratch.
    __device__ bool await_window(std::size_t window) const {
        const int lane = static_cast<int>(threadIdx.x);
        const bool came =
            lane >= program_.lane_count || await_lane(lane, window * program_.lanes[lane].steps);
        return __syncthreads_and(came) != 0;
    }

    __device__ bool await_lane(int lane, std::size_t steps) const {
        const std::uint32_t* const progress =
            &program_.desk->progress[lane * program_.workers + worker_];
        return await_counter(run_.team, abi::DevicePhase::kStep, progress, run_.team.rank,
                             static_cast<std::uint32_t>(steps));
    }

    /// What a step moves in one window: nothing travels where its chunks are empty.
    struct Move {
        std::size_t window;
        bool is_receiving;
        bool is_sending;
    };

    __device__ bool run_step(const abi::DeviceStep& step, std::size_t window, std::size_t done) {
        const abi::DeviceSlice& any = step.source_count > 0 ? step.sources[0] : step.target;
        const bool moves = step.chunks > 0 && bytes_of(any, step.chunks, window) > 0;
        const Move move{window, moves && step.from >= 0, moves && step.to >= 0};
        if (!await_all(step, move)) return false;
        if (moves) move_chunks(step, move);
        pass_on(step, move, done);
        return true;
    }

    __device__ std::size_t bytes_of(const abi::DeviceSlice& slice, int chunks,
                                    std::size_t window) const {
        std::size_t bytes = 0;
        for (int index = 0; index < chunks; ++index)
            bytes += cut_.chunk(window, (slice.first + index) % cut_.chunks).bytes;
        return bytes;
    }

    // Threads that wait, and then tell: in warps of their own, since they wait at once.
    static constexpr int kReceiver = 0;
    static constexpr int kSender = 32;
    static constexpr int kFirstWaiter = 64;
    static_assert(kFirstWaiter + abi::kMostLaneWaits <= abi::kLeastProgramThreads);

    __device__ bool await_all(const abi::DeviceStep& step, const Move& move) const {
        const int thread = static_cast<int>(threadIdx.x);
        bool came = true;
        if (thread == kReceiver && move.is_receiving) came = ports_[step.from].await(run_.team);
        if (thread == kSender && move.is_sending) came = ports_[step.to].await(run_.team);
        const int wait = thread - kFirstWaiter;
        if (wait >= 0 && wait < step.waits) {
            const abi::DeviceWait& other = program_.waits[step.first_wait + wait];
            const std::size_t before = move.window * program_.lanes[other.lane].steps;
            came = await_lane(other.lane, before + other.step + 1);
        }
        return __syncthreads_and(came) != 0;
    }

    __device__ void pass_on(const abi::DeviceStep& step, const Move& move, std::size_t done) {
        __syncthreads();
        if (threadIdx.x == kReceiver && move.is_receiving) ports_[step.from].pass();
        if (threadIdx.x == kSender && move.is_sending) ports_[step.to].pass();
        if (threadIdx.x == kFirstWaiter && step.is_awaited != 0)
            store_release(&program_.desk->progress[blockIdx.x], static_cast<std::uint32_t>(done));
    }

    __device__ void move_chunks(const abi::DeviceStep& step, const Move& move) const {
        const abi::DeviceSlice& any = step.source_count > 0 ? step.sources[0] : step.target;
        std::byte* incoming = move.is_receiving ? ports_[step.from].slot() : nullptr;
        std::byte* outgoing = move.is_sending ? ports_[step.to].slot() : nullptr;
        for (int index = 0; index < step.chunks; ++index) {
            const Range chunk = cut_.chunk(move.window, (any.first + index) % cut_.chunks);
            const Operands operands = operands_of(step, index, chunk, incoming, outgoing);
            if (operands.from.count == 2) {
                combine_bytes<2>(block_crew(), operands.from, operands.to, chunk.bytes, reduction_);
            } else {
                copy_bytes(block_crew(), operands.from.at[0], operands.to, chunk.bytes);
            }
            if (incoming != nullptr) incoming += aligned(chunk.bytes);
            if (outgoing != nullptr) outgoing += aligned(chunk.bytes);
        }
    }

    struct Operands {
        Sources from;
        Targets to;
    };
    __device__ Operands operands_of(const abi::DeviceStep& step, int index, const Range& chunk,
                                    const std::byte* incoming, std::byte* outgoing) const {
        Operands operands{};
        std::byte* const target =
            step.has_target != 0 ? place_of(step.target, index, chunk) : nullptr;
        operands.from.count = step.source_count + (incoming != nullptr ? 1 : 0);
        operands.from.at[0] =
            step.source_count > 0 ? place_of(step.sources[0], index, chunk) : incoming;
        operands.from.at[1] =
            step.source_count > 1 ? place_of(step.sources[1], index, chunk) : incoming;
        operands.to.count = (target != nullptr ? 1 : 0) + (outgoing != nullptr ? 1 : 0);
        operands.to.at[0] = target != nullptr ? target : outgoing;
        operands.to.at[1] = outgoing;
        return operands;
    }

    /// Of the slice's chunk `index`, which is `chunk` of its block.
    __device__ std::byte* place_of(const abi::DeviceSlice& slice, int index,
                                   const Range& chunk) const {
        const int at = slice.first + index;
        switch (slice.buffer) {
            case abi::DeviceBuffer::kInput:
                return const_cast<std::byte*>(run_.inputs[at / cut_.chunks]) + chunk.begin;
            case abi::DeviceBuffer::kOutput:
                return run_.outputs[at / cut_.chunks] + chunk.begin;
            case abi::DeviceBuffer::kScratch:
                break;
        }
        const std::size_t own = static_cast<std::size_t>(worker_) * program_.scratch_chunks;
        return program_.scratch + (own + at) * cut_.longest;
    }

    const Run& run_;
    const abi::DeviceProgram& program_;
    const Reduction& reduction_;
    const abi::DeviceLane lane_;
    const int worker_;
    const Cut cut_;
    Port* const ports_;
};

/// The last block of the launch leaves all progress at 0.
__device__ void forget_progress(abi::DeviceDesk* desk) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(&desk->finished, 1) + 1 < gridDim.x) return;
    __threadfence();
    for (unsigned block = 0; block < gridDim.x; ++block) desk->progress[block] = 0;
    desk->finished = 0;
}

template <typename Reduction>
__global__ void __launch_bounds__(512, 1)
    run_program(const __grid_constant__ RunArguments<Reduction> args) {
    __shared__ Visit::Addresses desks;
    __shared__ Port ports[abi::kMostLanePorts];
    const Run& run = args.run;
    const Visit visit(run.team);
    if (visit.greet(run.postings, desks)) {
        const bool has_work =
            static_cast<int>(blockIdx.x) < run.program.lane_count * run.program.workers;
        if (has_work) Worker<Reduction>(run, args.reduction, ports).work(desks);
        if (run.program.is_coupled != 0) forget_progress(run.program.desk);
        visit.depart(Visit::Stores::kNone);
    }
    visit.end();
}

/// What averages are divided by, after the sum.
template <typename Reduction>
__global__ void __launch_bounds__(512)
    divide_output(const __grid_constant__ RunArguments<Reduction> args) {
    Sources from{};
    Targets to{};
    from.at[0] = to.at[0] = args.run.outputs[0];
    from.count = to.count = 1;
    combine_bytes<1>(grid_crew(), from, to, args.run.bytes, args.reduction);
}

Status launch_sum(const Run& run, Stream stream) {
    return with_reduction(run, [&]<typename Reduction>(const Reduction& reduction) {
        return launch_kernel(run_program<Reduction>, {run, reduction}, run.plan, stream);
    });
}

}  // namespace

Status launch_program(const Run& run, Stream stream) {
    Run sum = run;
    if (!run.reduces) sum.type = DataType::kFloat32;
    if (!run.reduces || run.op == ReduceOp::kAvg) sum.op = ReduceOp::kSum;
    PCCL_TRY(launch_sum(sum, stream));
    const bool is_loading = run.plan.blocks == 0;
    const bool is_divided = run.reduces && run.op == ReduceOp::kAvg && run.outputs[0] != nullptr;
    if (!is_loading && !is_divided) return Status::ok();
    return with_reduction(run, [&]<typename Reduction>(const Reduction& reduction) {
        return launch_kernel(divide_output<Reduction>, {run, reduction}, run.plan, stream);
    });
}

}  // namespace pccl::kernels
