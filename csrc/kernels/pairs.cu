// SPDX-License-Identifier: Apache-2.0

// Blocks whose lengths only pairs of ranks have, between GPUs that do not reach each other: plain
// messages in slots of their receiver, as those of programs, whose FIFOs they use.
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/fifo.cuh"
#include "csrc/kernels/device/lengths.cuh"
#include "csrc/kernels/device/shares.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;
using PlainPort = FifoPort<abi::MessageForm::kPlain>;

/// Shared memory of a block: its ends of the FIFOs to and from each peer.
struct PairPorts {
    PlainPort to[abi::kMostDevices];
    PlainPort from[abi::kMostDevices];
};

/// Moves this block's share of all blocks. All threads call its functions.
class PairWorker {
   public:
    __device__ PairWorker(const PairsLaunch& args, PairPorts& ports)
        : args_(args), team_(args.team), ports_(ports) {}

    /// Opens the FIFOs. False, on all threads, where the states are not known.
    [[nodiscard]] __device__ bool open() {
        const int peer = static_cast<int>(threadIdx.x) % abi::kMostDevices;
        const bool is_sending = threadIdx.x < abi::kMostDevices;
        bool is_open = true;
        if (threadIdx.x < 2 * abi::kMostDevices && peer < team_.size && peer != team_.rank) {
            const std::size_t messages = windows_in(is_sending ? sent_to(peer) : got_from(peer));
            const abi::DevicePort port{peer, 0, is_sending ? 1 : 0, static_cast<int>(messages)};
            PlainPort& end = is_sending ? ports_.to[peer] : ports_.from[peer];
            is_open = end.open(port, team_.rank, static_cast<int>(blockIdx.x),
                               args_.states.with[peer], 1);
        }
        return __syncthreads_and(is_open) != 0;
    }

    /// Exchanges with one pair of peers after the other: a message that waits for a slot waits for
    /// a rank that is in the same step, or an earlier one. False, on all threads, when a wait
    /// failed.
    [[nodiscard]] __device__ bool run() const {
        keep_own();
        for (int step = 1; step < team_.size; ++step) {
            const int to = (team_.rank + step) % team_.size;
            const int from = (team_.rank - step + team_.size) % team_.size;
            const Range sent = sent_to(to);
            const Range got = got_from(from);
            for (std::size_t i = 0; i < windows_in(sent) || i < windows_in(got); ++i) {
                if (i < windows_in(sent) && !send(to, sent, i)) return false;
                if (i < windows_in(got) && !receive(from, got, i)) return false;
            }
        }
        return true;
    }

    /// Closes the FIFOs after run().
    __device__ void close() const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size || peer == team_.rank) return;
        ports_.to[peer].close();
        ports_.from[peer].close();
    }

   private:
    [[nodiscard]] static __device__ Range share_of(std::size_t bytes) {
        return Shares(bytes, static_cast<int>(gridDim.x)).of(static_cast<int>(blockIdx.x));
    }
    [[nodiscard]] __device__ Range sent_to(int peer) const {
        return share_of(args_.blocks.bytes[peer]);
    }
    [[nodiscard]] __device__ Range got_from(int peer) const {
        return share_of(args_.peer_pointers.inputs[peer]);
    }
    [[nodiscard]] static __device__ std::size_t windows_in(const Range& share) {
        return (share.bytes + abi::kSlotBytes - 1) / abi::kSlotBytes;
    }
    [[nodiscard]] static __device__ Range window(const Range& share, std::size_t index) {
        const Range part = within(share.bytes, index * abi::kSlotBytes, abi::kSlotBytes);
        return {share.begin + part.begin, part.bytes};
    }

    __device__ void keep_own() const {
        const Range own = sent_to(team_.rank);
        const std::byte* const from = args_.blocks.inputs[team_.rank];
        std::byte* const to = args_.blocks.outputs[team_.rank];
        if (from != to) copy_bytes(block_group(), from + own.begin, to + own.begin, own.bytes);
    }
    [[nodiscard]] __device__ bool send(int peer, const Range& share, std::size_t index) const {
        const PlainPort& port = ports_.to[peer];
        const std::uint32_t before = port.before(0, static_cast<std::uint32_t>(index));
        const Range part = window(share, index);
        if (!await(port, before)) return false;
        copy_bytes(block_group(), args_.blocks.inputs[peer] + part.begin, port.slot(before),
                   part.bytes);
        pass(port, before);
        return true;
    }
    [[nodiscard]] __device__ bool receive(int peer, const Range& share, std::size_t index) const {
        const PlainPort& port = ports_.from[peer];
        const std::uint32_t before = port.before(0, static_cast<std::uint32_t>(index));
        const Range part = window(share, index);
        if (!await(port, before)) return false;
        copy_bytes(block_group(), port.slot(before), args_.blocks.outputs[peer] + part.begin,
                   part.bytes);
        pass(port, before);
        return true;
    }
    [[nodiscard]] __device__ bool await(const PlainPort& port, std::uint32_t before) const {
        const bool came = threadIdx.x != 0 || port.await(team_, before);
        return __syncthreads_and(came) != 0;
    }
    static __device__ void pass(const PlainPort& port, std::uint32_t before) {
        __syncthreads();
        if (threadIdx.x == 0) port.pass(before);
    }

    const PairsLaunch& args_;
    const abi::DeviceTeam& team_;
    PairPorts& ports_;
};

/// No rank's tensors are shared, so one that gives up leaves at once. The exit barrier keeps the
/// entry lines until all ranks have read them.
__global__ void __launch_bounds__(512, 1) exchange_pairs(const __grid_constant__ PairsLaunch args) {
    __shared__ EpochScope::Addresses addresses;
    __shared__ PairPorts ports;
    const EpochScope scope(args.team);
    PairWorker worker(args, ports);
    if (!scope.enter(args.peer_pointers, addresses)) return scope.end();
    if (!have_equal_lengths(args.team, args.blocks.bytes, addresses) || !worker.open() ||
        !worker.run())
        return scope.end_withdrawn();
    worker.close();
    scope.exit(EpochScope::Stores::kNone);
    scope.end();
}

}  // namespace

Status launch_pairs(const PairsLaunch& pairs, Stream stream) {
    return launch_kernel(exchange_pairs, pairs, pairs.plan, stream);
}

}  // namespace pccl::kernels
