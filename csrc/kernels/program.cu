// Runs a schedule's program: each block is one worker of one lane (abi/device_program.h).
#include "csrc/kernels/device/chunk.cuh"
#include "csrc/kernels/device/shares.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;
using abi::MessageForm;

template <typename Reduction>
struct RunArguments {
    Run run;
    Reduction reduction;
};

/// What a worker moves at once of each block.
struct Window {
    std::size_t index;
    Range part;  // of every chunk
};

__device__ __forceinline__ std::size_t aligned(std::size_t bytes) {
    return (bytes + abi::kChunkAlignment - 1) / abi::kChunkAlignment * abi::kChunkAlignment;
}

/// Of a block.
struct SharedMemory {
    Port ports[abi::kMostLanePorts];
    abi::DeviceStep steps[64];  // of its lane; those of longer lanes are read where they are
};

template <typename Reduction, MessageForm kForm>
class Worker {
   public:
    /// Reads its program, which never changes, while the launch ahead may still run.
    __device__ Worker(const Run& run, const Reduction& reduction, SharedMemory& shared)
        : run_(run),
          program_(run.program),
          reduction_(reduction),
          number_(static_cast<int>(blockIdx.x) / program_.workers),
          worker_(static_cast<int>(blockIdx.x) % program_.workers),
          ports_(shared.ports) {
        if (!has_work()) return;
        lane_ = program_.lanes[number_];
        const int index = static_cast<int>(threadIdx.x);
        if (index < program_.most_ports)
            port_ = program_.ports[number_ * program_.most_ports + index];
        steps_ = program_.steps + number_ * program_.most_steps;
        copy_steps(shared.steps);
    }

    [[nodiscard]] __device__ bool has_work() const { return number_ < program_.lane_count; }

    /// False, on all threads, when a wait failed.
    __device__ bool work() const {
        if (!open_ports()) return false;
        const Range own =
            within(program_.chunk_bytes, worker_ * program_.part_bytes, program_.part_bytes);
        const std::size_t most = program_.window_bytes;
        std::size_t index = 0;
        for (std::size_t done = 0; done < own.bytes; done += most, ++index)
            if (!run_window({index, {own.begin + done, min(most, own.bytes - done)}})) return false;
        close_ports();
        return true;
    }

   private:
    template <int kMost>
    __device__ void copy_steps(abi::DeviceStep (&shared)[kMost]) {
        if (program_.most_steps > kMost) return;
        const int index = static_cast<int>(threadIdx.x);
        if (index < program_.most_steps) shared[index] = steps_[index];
        steps_ = shared;
    }
    __device__ bool open_ports() const {
        const int index = static_cast<int>(threadIdx.x);
        bool is_open = true;
        if (index < lane_.ports) {
            const int fifo = port_.channel * program_.workers + worker_;
            is_open = ports_[index].open(port_, run_.team.rank, fifo, program_.desk, kForm);
        }
        return __syncthreads_and(is_open) != 0;
    }
    __device__ void close_ports() const {
        __syncthreads();
        const int index = static_cast<int>(threadIdx.x);
        if (index < lane_.ports) ports_[index].close();
    }

    __device__ bool run_window(const Window& window) const {
        const bool shares_scratch = program_.is_coupled != 0 && program_.scratch_chunks > 0;
        if (shares_scratch && window.index > 0 && !await_windows(window.index)) return false;
        const std::size_t done = window.index * lane_.steps;
        for (int index = 0; index < lane_.steps; ++index)
            if (!run_step(steps_[index], window, done + index + 1)) return false;
        return true;
    }

    /// All lanes have finished the windows before: the next one uses the same scratch.
    __device__ bool await_windows(std::size_t before) const {
        const int lane = static_cast<int>(threadIdx.x);
        const bool came =
            lane >= program_.lane_count || await_lane(lane, before * program_.lanes[lane].steps);
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
        const Window& window;
        bool is_receiving;
        bool is_sending;
    };

    __device__ bool run_step(const abi::DeviceStep& step, const Window& window,
                             std::size_t done) const {
        const bool moves = has_bytes(step, window);
        const Move move{window, moves && step.from >= 0, moves && step.to >= 0};
        if (is_timed()) begin_time(done - 1, bytes_in(step, window));
        if (!await_all(step, move)) return false;
        if (is_timed()) time_at(done - 1).moved = global_timer_ns();
        const bool came = !moves || move_all(step, move);
        if (__syncthreads_and(came) == 0) return false;
        if (is_timed()) time_at(done - 1).end = global_timer_ns();
        pass_on(step, move, done);
        return true;
    }

    /// Whether this thread notes times.
    [[nodiscard]] __device__ bool is_timed() const {
        return program_.times != nullptr && threadIdx.x == kTimekeeper;
    }
    [[nodiscard]] __device__ abi::StepTime& time_at(std::size_t index) const {
        return program_.times[blockIdx.x * program_.times_of_block + index];
    }
    __device__ __noinline__ void begin_time(std::size_t index, std::size_t bytes) const {
        time_at(index).bytes = bytes;
        time_at(index).begin = global_timer_ns();
    }

    /// Where the step's chunk `index` lies in its block, as far as it is in the window: the same
    /// wherever the block is.
    __device__ Range chunk(const abi::DeviceStep& step, int index, const Window& window) const {
        const abi::DeviceSlice& any = step.source_count > 0 ? step.sources[0] : step.target;
        const Range whole = within(run_.bytes, chunk_of(any, index).chunk * program_.chunk_bytes,
                                   program_.chunk_bytes);
        const Range part = within(whole.bytes, window.part.begin, window.part.bytes);
        return {whole.begin + part.begin, part.bytes};
    }
    /// The slice's chunk `index`, in a buffer.
    __device__ abi::DeviceSlice chunk_of(const abi::DeviceSlice& slice, int index) const {
        if (slice.buffer == abi::DeviceBuffer::kListed) return program_.places[slice.at + index];
        const int stride = slice.buffer == abi::DeviceBuffer::kScratch ? 1 : 0;
        return {slice.buffer, slice.at + stride * index, slice.chunk + index};
    }
    __device__ bool has_bytes(const abi::DeviceStep& step, const Window& window) const {
        for (int index = 0; index < step.chunks; ++index)
            if (chunk(step, index, window).bytes > 0) return true;
        return false;
    }

    [[nodiscard]] __device__ std::size_t bytes_in(const abi::DeviceStep& step,
                                                  const Window& window) const {
        std::size_t bytes = 0;
        for (int index = 0; index < step.chunks; ++index) bytes += chunk(step, index, window).bytes;
        return bytes;
    }

    // Threads that wait, and then tell: in warps of their own, since they wait at once.
    static constexpr int kReceiver = 0;
    static constexpr int kSender = 32;
    static constexpr int kFirstWaiter = 64;
    static_assert(kFirstWaiter + abi::kMostLaneWaits <= abi::kLeastProgramThreads);
    static constexpr int kTimekeeper = abi::kLeastProgramThreads - 1;  // seldom waits

    __device__ bool await_all(const abi::DeviceStep& step, const Move& move) const {
        const int thread = static_cast<int>(threadIdx.x);
        bool came = true;
        if (thread == kReceiver && move.is_receiving && kForm == MessageForm::kPlain)
            came = ports_[step.from].await(run_.team);
        if (thread == kSender && move.is_sending) came = ports_[step.to].await(run_.team);
        const int wait = thread - kFirstWaiter;
        if (wait >= 0 && wait < step.waits) {
            const abi::DeviceWait& other = program_.waits[step.first_wait + wait];
            const std::size_t before = move.window.index * program_.lanes[other.lane].steps;
            came = await_lane(other.lane, before + other.step + 1);
        }
        return __syncthreads_and(came) != 0;
    }

    __device__ void pass_on(const abi::DeviceStep& step, const Move& move, std::size_t done) const {
        if (threadIdx.x == kReceiver && move.is_receiving) pass_on(ports_[step.from]);
        if (threadIdx.x == kSender && move.is_sending) pass_on(ports_[step.to]);
        if (threadIdx.x == kFirstWaiter && step.is_awaited != 0)
            store_release(&program_.desk->progress[blockIdx.x], static_cast<std::uint32_t>(done));
    }

    __device__ void pass_on(Port& port) const {
        if constexpr (kForm == MessageForm::kPlain) {
            port.pass();
        } else {
            port.pass_silently();
        }
    }

    /// False, on any thread, when what it waited for did not come.
    __device__ bool move_all(const abi::DeviceStep& step, const Move& move) const {
        if constexpr (kForm == MessageForm::kWords)
            return move_in_lines<abi::Line>(step, move);
        else if constexpr (kForm == MessageForm::kLines)
            return move_in_lines<abi::WideLine>(step, move);
        move_all_directly(step, move);
        return true;
    }

    __device__ void move_all_directly(const abi::DeviceStep& step, const Move& move) const {
        std::byte* incoming = move.is_receiving ? ports_[step.from].slot() : nullptr;
        std::byte* outgoing = move.is_sending ? ports_[step.to].slot() : nullptr;
        for (int index = 0; index < step.chunks; ++index) {
            const Range chunk = this->chunk(step, index, move.window);
            move_bytes(local(step, index, chunk), incoming, outgoing, reduction_);
            if (incoming != nullptr) incoming += aligned(chunk.bytes);
            if (outgoing != nullptr) outgoing += aligned(chunk.bytes);
        }
    }

    template <typename Line>
    __device__ bool move_in_lines(const abi::DeviceStep& step, const Move& move) const {
        MessageLines<Line> lines;
        if (move.is_receiving) lines.receive_by(ports_[step.from]);
        if (move.is_sending) lines.send_by(ports_[step.to]);
        for (int index = 0; index < step.chunks; ++index) {
            const Range chunk = this->chunk(step, index, move.window);
            if (!move_by(lines, local(step, index, chunk))) return false;
        }
        return true;
    }
    /// And goes on to where the next chunk lies in both messages.
    __device__ bool move_by(MessageLines<abi::Line>& lines, const LocalChunk& chunk) const {
        if (!move_words(run_.team, chunk, lines, reduction_)) return false;
        lines.skip(aligned(chunk.bytes) / kWordBytes);
        return true;
    }
    __device__ bool move_by(MessageLines<abi::WideLine>& lines, const LocalChunk& chunk) const {
        if (!move_lines(run_.team, chunk, lines, reduction_)) return false;
        lines.skip(2 * pairs_for(chunk.bytes));
        return true;
    }

    __device__ LocalChunk local(const abi::DeviceStep& step, int index, const Range& chunk) const {
        return {{step.source_count > 0 ? place_of(step.sources[0], index, chunk) : nullptr,
                 step.source_count > 1 ? place_of(step.sources[1], index, chunk) : nullptr},
                step.has_target != 0 ? place_of(step.target, index, chunk) : nullptr,
                chunk.bytes};
    }

    /// Of the slice's chunk `index`, which is `chunk` of its block.
    __device__ std::byte* place_of(const abi::DeviceSlice& slice, int index,
                                   const Range& chunk) const {
        const abi::DeviceSlice place = chunk_of(slice, index);
        switch (place.buffer) {
            case abi::DeviceBuffer::kInput:
                return const_cast<std::byte*>(run_.inputs[place.at]) + chunk.begin;
            case abi::DeviceBuffer::kOutput:
                return run_.outputs[place.at] + chunk.begin;
            case abi::DeviceBuffer::kScratch:
            case abi::DeviceBuffer::kListed:
                break;
        }
        const std::size_t own = static_cast<std::size_t>(worker_) * program_.scratch_chunks;
        return program_.scratch + (own + place.at) * program_.window_bytes;
    }

    const Run& run_;
    const abi::DeviceProgram& program_;
    const Reduction& reduction_;
    const int number_;  // of the lane
    const int worker_;
    abi::DeviceLane lane_{};
    abi::DevicePort port_{};  // of this thread
    const abi::DeviceStep* steps_ = nullptr;
    Port* const ports_;
};

/// The last block of the launch leaves all progress at 0. By one thread, when all are through.
__device__ void forget_progress(abi::DeviceDesk* desk) {
    __threadfence();
    if (atomicAdd(&desk->finished, 1) + 1 < gridDim.x) return;
    __threadfence();
    for (unsigned block = 0; block < gridDim.x; ++block) desk->progress[block] = 0;
    desk->finished = 0;
}

template <typename Reduction, MessageForm kForm>
__global__ void __launch_bounds__(512, 1)
    run_program(const __grid_constant__ RunArguments<Reduction> args) {
    __shared__ SharedMemory shared;
    const Run& run = args.run;
    Worker<Reduction, kForm> worker(run, args.reduction, shared);
    const Visit visit(run.team);
    visit.announce(run.postings);
    if (!worker.has_work() || worker.work()) {
        constexpr unsigned kInAnotherWarp = 32;
        if (run.program.is_coupled != 0 && threadIdx.x == kInAnotherWarp)
            forget_progress(run.program.desk);
        visit.see_all();
        visit.end();
    } else {
        visit.end_apart();
    }
}

/// Tells all ranks where they find this rank's desk.
__global__ void __launch_bounds__(32) meet_desks(const __grid_constant__ Run run) {
    __shared__ Visit::Addresses desks;
    const Visit visit(run.team);
    if (visit.greet(run.postings, desks)) {
        const int rank = static_cast<int>(threadIdx.x);
        auto* const desk = const_cast<std::byte*>(desks.inputs[rank % run.team.size]);
        if (rank < run.team.size)
            run.program.desk->peers[rank] = reinterpret_cast<abi::DeviceDesk*>(desk);
        visit.depart(Visit::Stores::kNone);
    }
    visit.end();
}

/// What averages are divided by, after the sum.
template <typename Reduction>
__global__ void __launch_bounds__(512)
    divide_output(const __grid_constant__ RunArguments<Reduction> args) {
    await_launch_ahead();
    Sources from{};
    Targets to{};
    from.at[0] = to.at[0] = args.run.outputs[0];
    from.count = to.count = 1;
    combine_bytes<1>(grid_crew(), from, to, args.run.bytes, args.reduction);
}

template <typename Reduction>
auto* kernel_for(MessageForm form) {
    if (form == MessageForm::kWords) return run_program<Reduction, MessageForm::kWords>;
    if (form == MessageForm::kLines) return run_program<Reduction, MessageForm::kLines>;
    return run_program<Reduction, MessageForm::kPlain>;
}

Status launch_sum(const Run& run, Stream stream) {
    return with_reduction(run, [&]<typename Reduction>(const Reduction& reduction) {
        return launch_kernel(kernel_for<Reduction>(form_of(run.plan.protocol)), {run, reduction},
                             run.plan, stream);
    });
}

}  // namespace

Status launch_meeting(const Run& run, Stream stream) {
    return launch_kernel(meet_desks, run, {.blocks = run.plan.blocks == 0 ? 0 : 1, .threads = 32},
                         stream);
}

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
