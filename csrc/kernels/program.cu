// SPDX-License-Identifier: Apache-2.0

// Interpreter of a schedule's program: each block is one worker of one lane (abi/device_program.h).
#include "csrc/kernels/device/chunk.cuh"
#include "csrc/kernels/device/shares.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;
using abi::MessageForm;

template <typename Reduction>
struct RunArguments {
    ProgramLaunch run;
    Reduction reduction;
};

template <MessageForm kForm>
using LineOf = std::conditional_t<kForm == MessageForm::kLL, abi::LLLine, abi::LL128Line>;

/// Part of every chunk that a worker moves at a time.
struct Window {
    std::size_t index;
    Range part;  // of every chunk
};

__device__ __forceinline__ std::size_t aligned(std::size_t bytes) {
    return (bytes + abi::kChunkAlignment - 1) / abi::kChunkAlignment * abi::kChunkAlignment;
}

/// A step in one window, without everything that depends on the thread. One thread prepares each
/// step, in parallel with the others. (It took 1 us a step when each thread prepared all steps.)
struct alignas(16) ReadyStep {
    LocalChunk first;           // of the chunks
    const std::byte* incoming;  // message that it receives; null: none
    std::byte* outgoing;
    std::size_t bytes;       // of all chunks
    std::uint32_t received;  // messages before that one: in the window, until its port is open
    std::uint32_t sent;
    std::int32_t chunks;  // 0: no chunk has bytes, and no data travels
    std::int32_t from;
    std::int32_t to;
    std::int32_t sender;
    std::int32_t first_wait;
    std::int32_t waits;
    std::int32_t lacks_room;  // for its outgoing message, as seen when its port was opened
    std::int32_t is_awaited;
    std::int32_t meets;  // all threads finish before others are notified
};

/// Shared memory of a block.
template <MessageForm kForm>
struct SharedMemory {
    FifoPort<kForm> ports[abi::kMostLanePorts];
    ReadyStep steps[64];  // of its lane; longer lanes load them batch by batch
};

template <typename Reduction, MessageForm kForm>
class Worker {
   public:
    /// Reads the program, which never changes, while the previous launch may still run.
    __device__ Worker(const ProgramLaunch& run, const Reduction& reduction,
                      SharedMemory<kForm>& shared)
        : run_(run),
          program_(run.program),
          reduction_(reduction),
          number_(static_cast<int>(blockIdx.x) / program_.workers),
          worker_(static_cast<int>(blockIdx.x) % program_.workers),
          shared_(shared) {
        if (!has_work()) return;
        lane_ = program_.lanes[number_];
        if (port_of_thread() >= 0 && port_of_thread() < program_.most_ports)
            port_ = program_.ports[number_ * program_.most_ports + port_of_thread()];
        steps_ = program_.steps + number_ * program_.most_steps;
        own_ = within(program_.chunk_bytes, worker_ * program_.part_bytes, program_.part_bytes);
        // There are few windows, and a 64-bit division is slow.
        for (std::size_t at = 0; at < own_.bytes; at += program_.window_bytes) ++windows_;
        if (windows_ > 0) outline({0, window_at(0)}, 0);
    }

    [[nodiscard]] __device__ bool has_work() const { return number_ < program_.lane_count; }

    /// Opens the ports after the previous launch has ended. Other warps than the announcing one do
    /// it, since both wait for memory.
    __device__ void open_ports() {
        const int index = port_of_thread();
        if (index < 0 || index >= lane_.ports) return;
        const int fifo = port_.channel * program_.workers + worker_;
        is_open_ = shared_.ports[index].open(port_, run_.team.rank, fifo,
                                             program_.states.with[port_.peer], windows_);
    }

    /// Runs all windows after open_ports(). False, on all threads, when a wait failed.
    __device__ bool work(const EpochScope& scope) {
        if (__syncthreads_and(is_open_) == 0) return false;
        bool came = true;
        for (std::size_t index = 0; index < windows_; ++index)
            if (!run_window({index, window_at(index * program_.window_bytes)}, scope, came))
                return false;
        if (!kIsPlain) scope.allow_next_early(came, seen_);
        return close_ports(came);
    }

    /// Returns the peers' announcements as of the begin of the last step.
    [[nodiscard]] __device__ const abi::LLLine& seen() const { return seen_; }

   private:
    static constexpr int kBatch = sizeof(SharedMemory<kForm>::steps) / sizeof(ReadyStep);
    static constexpr bool kIsPlain = kForm == MessageForm::kPlain;
    /// Loops over plain messages need the registers for other values.
    using Held = std::conditional_t<kIsPlain, const ReadyStep&, const ReadyStep>;

    [[nodiscard]] __device__ Range window_at(std::size_t done) const {
        return {own_.begin + done, min(program_.window_bytes, own_.bytes - done)};
    }

    [[nodiscard]] static __device__ int port_of_thread() {
        constexpr int kFirst = kWarpThreads;
        static_assert(kFirst + abi::kMostLanePorts <= abi::kLeastProgramThreads);
        return static_cast<int>(threadIdx.x) - kFirst;
    }
    __device__ bool close_ports(bool came) const {
        const bool all_came = __syncthreads_and(came) != 0;
        const int index = static_cast<int>(threadIdx.x);
        if (all_came && index < lane_.ports) shared_.ports[index].close();
        return all_came;
    }

    [[nodiscard]] __device__ bool has_step(int first) const {
        const int index = static_cast<int>(threadIdx.x);
        return index < kBatch && first + index < lane_.steps;
    }
    /// Prepares the batch of steps from `first` on in one window, as far as possible before ports
    /// are open.
    __device__ void outline(const Window& window, int first) const {
        if (!has_step(first)) return;
        const abi::DeviceStep& step = steps_[first + threadIdx.x];
        const std::size_t bytes = bytes_in(step, window);
        shared_.steps[threadIdx.x] = {.first = local(step, 0, chunk(step, 0, window)),
                                      .incoming = nullptr,
                                      .outgoing = nullptr,
                                      .bytes = bytes,
                                      .received = static_cast<std::uint32_t>(step.received),
                                      .sent = static_cast<std::uint32_t>(step.sent),
                                      .chunks = bytes > 0 ? step.chunks : 0,
                                      .from = step.from,
                                      .to = step.to,
                                      .sender = 0,
                                      .first_wait = step.first_wait,
                                      .waits = step.waits,
                                      .lacks_room = 0,
                                      .is_awaited = step.is_awaited,
                                      .meets = kIsPlain ? 1 : step.is_awaited};
    }
    /// Adds the values that depend on ports; the same threads call it.
    __device__ void address(const Window& window, int first) const {
        if (!has_step(first)) return;
        ReadyStep& step = shared_.steps[threadIdx.x];
        if (step.from >= 0) address_received(step, window);
        if (step.to >= 0) address_sent(step, window);
    }
    __device__ void address_received(ReadyStep& step, const Window& window) const {
        const FifoPort<kForm>& port = shared_.ports[step.from];
        step.received = port.before(window.index, step.received);
        step.sender = port.peer();
        if (step.bytes > 0) step.incoming = port.slot(step.received);
        if (port.is_acknowledged(step.received)) step.meets = 1;
    }
    __device__ void address_sent(ReadyStep& step, const Window& window) const {
        const FifoPort<kForm>& port = shared_.ports[step.to];
        step.sent = port.before(window.index, step.sent);
        if (step.bytes == 0) return;
        step.outgoing = port.slot(step.sent);
        if (!port.has_seen(step.sent)) step.lacks_room = 1;
    }

    /// Runs one window. False, on all threads, when a wait failed; some threads detect that only
    /// later, by `came`.
    __device__ bool run_window(const Window& window, const EpochScope& scope, bool& came) {
        const bool shares_scratch = program_.is_coupled != 0 && program_.scratch_chunks > 0;
        if (shares_scratch && window.index > 0 && !await_windows(window.index, came)) return false;
        for (int index = 0; index < lane_.steps; ++index) {
            const int place = index % kBatch;
            if (place == 0) {
                if (index > 0 || window.index > 0) {
                    __syncthreads();
                    outline(window, index);
                }
                address(window, index);
                __syncthreads();
            }
            if (!kIsPlain && index + 1 == lane_.steps) seen_ = scope.peek_entry();
            const Held step = shared_.steps[place];
            if (!run_step(index, step, window, came)) return false;
        }
        return true;
    }

    /// Waits until all lanes have finished the previous windows, since the next one uses the same
    /// scratch.
    __device__ bool await_windows(std::size_t before, bool came) const {
        const int lane = static_cast<int>(threadIdx.x);
        const bool all =
            lane >= program_.lane_count || await_lane(lane, before * program_.lanes[lane].steps);
        return __syncthreads_and(came && all) != 0;
    }

    __device__ bool await_lane(int lane, std::size_t steps) const {
        const std::uint32_t* const progress =
            &program_.progress->steps[lane * program_.workers + worker_];
        return await_counter(run_.team, abi::DevicePhase::kStep, progress, run_.team.rank,
                             static_cast<std::uint32_t>(steps));
    }

    /// Runs step `index` of the lane. LL and LL128 need no barrier of the block's threads: a thread
    /// handles the same parts of a chunk in every step, and so reads only its own results from
    /// memory.
    __device__ bool run_step(int index, const ReadyStep& step, const Window& window,
                             bool& came) const {
        const std::size_t before = window.index * lane_.steps + index;
        if (is_timed()) begin_time(before, step.bytes);
        if ((kIsPlain || step.waits > 0) && !await_all(step, window, came)) return false;
        if (kIsPlain && is_timed()) time_at(before).moved = global_timer_ns();
        if (step.chunks > 0 && came) came = move_all(index, step, window);
        if (step.meets != 0) {
            if (__syncthreads_and(came) == 0) return false;
            pass_on(step, before + 1);
        }
        if (is_timed()) time_at(before).end = global_timer_ns();
        return true;
    }

    /// Returns whether this thread records times.
    [[nodiscard]] __device__ bool is_timed() const {
        return program_.times != nullptr && threadIdx.x == kTimekeeper;
    }
    [[nodiscard]] __device__ abi::DeviceStepTime& time_at(std::size_t index) const {
        return program_.times[blockIdx.x * program_.times_of_block + index];
    }
    __device__ void begin_time(std::size_t index, std::size_t bytes) const {
        time_at(index).bytes = bytes;
        time_at(index).begin = time_at(index).moved = global_timer_ns();
    }

    /// Returns the range of the step's chunk `index` in its block, clipped to the window; it does
    /// not depend on the block's address.
    __device__ Range chunk(const abi::DeviceStep& step, int index, const Window& window) const {
        const abi::DeviceSlice& any = step.source_count > 0 ? step.sources[0] : step.target;
        const Range whole = within(run_.bytes, chunk_of(any, index).chunk * program_.chunk_bytes,
                                   program_.chunk_bytes);
        const Range part = within(whole.bytes, window.part.begin, window.part.bytes);
        return {whole.begin + part.begin, part.bytes};
    }
    /// Returns chunk `index` of the slice, in a buffer.
    __device__ abi::DeviceSlice chunk_of(const abi::DeviceSlice& slice, int index) const {
        if (slice.buffer == abi::DeviceBuffer::kListed) return program_.places[slice.at + index];
        const int stride = slice.buffer == abi::DeviceBuffer::kScratch ? 1 : 0;
        return {slice.buffer, slice.at + stride * index, slice.chunk + index};
    }
    [[nodiscard]] __device__ std::size_t bytes_in(const abi::DeviceStep& step,
                                                  const Window& window) const {
        std::size_t bytes = 0;
#pragma unroll 1
        for (int index = 0; index < step.chunks; ++index) bytes += chunk(step, index, window).bytes;
        return bytes;
    }

    // Threads that wait and then notify others. They are in different warps, since they wait at the
    // same time.
    static constexpr int kReceiver = 0;
    static constexpr int kSender = kWarpThreads;
    static constexpr int kFirstWaiter = 2 * kWarpThreads;
    static_assert(kFirstWaiter + abi::kMostLaneWaits <= abi::kLeastProgramThreads);
    /// Thread that records times. For plain messages it seldom waits; otherwise it has a part of
    /// each message.
    static constexpr int kTimekeeper = kIsPlain ? abi::kLeastProgramThreads - 1 : 0;

    __device__ bool await_all(const ReadyStep& step, const Window& window, bool came) const {
        const int thread = static_cast<int>(threadIdx.x);
        if (kIsPlain && thread == kReceiver && step.incoming != nullptr)
            came = shared_.ports[step.from].await(run_.team, step.received);
        if (kIsPlain && thread == kSender && step.outgoing != nullptr)
            came = shared_.ports[step.to].await(run_.team, step.sent);
        const int wait = thread - kFirstWaiter;
        if (wait >= 0 && wait < step.waits && came) {
            const abi::DeviceWait& other = program_.waits[step.first_wait + wait];
            const std::size_t before = window.index * program_.lanes[other.lane].steps;
            came = await_lane(other.lane, before + other.step + 1);
        }
        return __syncthreads_and(came) != 0;
    }

    /// Notifies peers and lanes. Empty messages are counted, too.
    __device__ void pass_on(const ReadyStep& step, std::size_t done) const {
        if (threadIdx.x == kReceiver && step.from >= 0)
            acknowledge(shared_.ports[step.from], step.received);
        if (kIsPlain && threadIdx.x == kSender && step.to >= 0)
            shared_.ports[step.to].pass(step.sent);
        if (threadIdx.x == kFirstWaiter && step.is_awaited != 0)
            store_release_here(&program_.progress->steps[blockIdx.x],
                               static_cast<std::uint32_t>(done));
    }
    __device__ void acknowledge(const FifoPort<kForm>& port, std::uint32_t received) const {
        if constexpr (kIsPlain) {
            port.pass(received);
        } else if (port.is_acknowledged(received)) {
            port.pass_relaxed(received);
        }
    }

    /// Moves all chunks. False, on any thread, when its data did not arrive.
    __device__ bool move_all(int index, const ReadyStep& step, const Window& window) const {
        if constexpr (kIsPlain) {
            move_all_directly(index, step, window);
            return true;
        } else {
            return move_by_lines(index, step, window);
        }
    }

    __device__ void move_all_directly(int index, const ReadyStep& step,
                                      const Window& window) const {
        const std::byte* incoming = step.incoming;
        std::byte* outgoing = step.outgoing;
#pragma unroll 1
        for (int i = 0; i < step.chunks; ++i) {
            const LocalChunk chunk = chunk_at(index, step, i, window);
            move_bytes(chunk, incoming, outgoing, reduction_);
            if (incoming != nullptr) incoming += aligned(chunk.bytes);
            if (outgoing != nullptr) outgoing += aligned(chunk.bytes);
        }
    }

    /// Moves chunks by lines; each thread waits for its own lines.
    __device__ bool move_by_lines(int index, const ReadyStep& step, const Window& window) const {
        if (step.lacks_room != 0 && !await_room(step)) return false;
        MessageLines<LineOf<kForm>> lines{
            .incoming = reinterpret_cast<const LineOf<kForm>*>(step.incoming),
            .outgoing = reinterpret_cast<LineOf<kForm>*>(step.outgoing),
            .received = number_after(step.received),
            .sent = number_after(step.sent),
            .sender = step.sender};
#pragma unroll 1
        for (int i = 0; i < step.chunks; ++i)
            if (!move_by(lines, chunk_at(index, step, i, window))) return false;
        return true;
    }
    /// Waits for a slot. The threads of a warp share the result where they write lines together.
    __device__ bool await_room(const ReadyStep& step) const {
        const bool has = shared_.ports[step.to].await(run_.team, step.sent);
        return kForm == MessageForm::kLL ? has : __all_sync(kWholeWarp, has) != 0;
    }
    /// Moves a chunk and advances to the next one in both messages.
    __device__ bool move_by(MessageLines<abi::LLLine>& lines, const LocalChunk& chunk) const {
        if (!move_by_ll(run_.team, chunk, lines, reduction_)) return false;
        lines.skip(aligned(chunk.bytes) / kWordBytes);
        return true;
    }
    __device__ bool move_by(MessageLines<abi::LL128Line>& lines, const LocalChunk& chunk) const {
        if (!move_by_ll128(run_.team, chunk, lines, reduction_)) return false;
        lines.skip(2 * pairs_for(chunk.bytes));
        return true;
    }

    /// Returns chunk `i` of step `index`.
    __device__ LocalChunk chunk_at(int index, const ReadyStep& step, int i,
                                   const Window& window) const {
        if (i == 0) return step.first;
        return local(steps_[index], i, chunk(steps_[index], i, window));
    }

    __device__ LocalChunk local(const abi::DeviceStep& step, int index, const Range& chunk) const {
        return {{step.source_count > 0 ? place_of(step.sources[0], index, chunk) : nullptr,
                 step.source_count > 1 ? place_of(step.sources[1], index, chunk) : nullptr},
                step.has_target != 0 ? place_of(step.target, index, chunk) : nullptr,
                chunk.bytes};
    }

    /// Returns the address of the slice's chunk `index`, whose range in its block is `chunk`.
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

    const ProgramLaunch& run_;
    const abi::DeviceProgram& program_;
    const Reduction& reduction_;
    const int number_;  // of the lane
    const int worker_;
    Range own_{};  // of every chunk
    std::uint32_t windows_ = 0;
    abi::DeviceLane lane_{};
    abi::DevicePort port_{};  // of this thread
    bool is_open_ = true;
    abi::LLLine seen_{};
    const abi::DeviceStep* steps_ = nullptr;
    SharedMemory<kForm>& shared_;
};

/// Resets all progress to 0 in the last block of the launch. One thread calls it after all others
/// have finished.
__device__ void forget_progress(abi::DeviceProgress* progress) {
    __threadfence();
    if (atomicAdd(&progress->finished, 1) + 1 < gridDim.x) return;
    __threadfence();
    for (unsigned block = 0; block < gridDim.x; ++block) progress->steps[block] = 0;
    progress->finished = 0;
}

template <typename Reduction, MessageForm kForm>
__global__ void __launch_bounds__(512, 1)
    run_program(const __grid_constant__ RunArguments<Reduction> args) {
    __shared__ SharedMemory<kForm> shared;
    const ProgramLaunch& run = args.run;
    Worker<Reduction, kForm> worker(run, args.reduction, shared);
    await_launch_ahead();
    worker.open_ports();
    const EpochScope scope(run.team);
    scope.announce(run.peer_pointers);
    if (!worker.has_work() || worker.work(scope)) {
        constexpr unsigned kInAnotherWarp = kWarpThreads;
        if (run.program.is_coupled != 0 && threadIdx.x == kInAnotherWarp)
            forget_progress(run.program.progress);
        scope.await_entries(worker.seen());
        scope.end();
    } else {
        scope.end_withdrawn();
    }
}

/// Sends all ranks the address of this rank's program state.
__global__ void __launch_bounds__(32) exchange_states(const __grid_constant__ ProgramLaunch run) {
    __shared__ EpochScope::Addresses states;
    const EpochScope scope(run.team);
    if (scope.enter(run.peer_pointers, states)) {
        const int rank = static_cast<int>(threadIdx.x);
        auto* const state = const_cast<std::byte*>(states.inputs[rank % run.team.size]);
        if (rank < run.team.size)
            run.program.states.with[rank]->peers[rank] =
                reinterpret_cast<abi::DeviceProgramState*>(state);
        scope.exit(EpochScope::Stores::kNone);
    }
    scope.end();
}

/// Divides the sum, for averages.
template <typename Reduction>
__global__ void __launch_bounds__(512)
    divide_output(const __grid_constant__ RunArguments<Reduction> args) {
    await_launch_ahead();
    Sources from{};
    Targets to{};
    from.at[0] = to.at[0] = args.run.outputs[0];
    from.count = to.count = 1;
    combine_bytes<1>(grid_group(), from, to, args.run.bytes, args.reduction);
}

template <typename Reduction>
auto* kernel_for(MessageForm form) {
    if (form == MessageForm::kLL) return run_program<Reduction, MessageForm::kLL>;
    if (form == MessageForm::kLL128) return run_program<Reduction, MessageForm::kLL128>;
    return run_program<Reduction, MessageForm::kPlain>;
}

Status launch_sum(const ProgramLaunch& run, Stream stream) {
    return with_reduction(run, [&]<typename Reduction>(const Reduction& reduction) {
        return launch_kernel(kernel_for<Undivided<Reduction>>(form_of(run.plan.protocol)),
                             {run, {reduction}}, run.plan, stream);
    });
}

}  // namespace

Status launch_state_exchange(const ProgramLaunch& run, Stream stream) {
    return launch_kernel(exchange_states, run,
                         {.blocks = run.plan.blocks == 0 ? 0 : 1, .threads = device::kWarpThreads},
                         stream);
}

Status launch_program(const ProgramLaunch& run, Stream stream) {
    ProgramLaunch sum = run;
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
