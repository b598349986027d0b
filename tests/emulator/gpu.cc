// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/gpu.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "tests/emulator/fiber.h"
#include "tests/emulator/include/cuda_runtime.h"
#include "tests/emulator/stacks.h"
#include "tests/emulator/worker.h"

thread_local uint3 threadIdx;
thread_local uint3 blockIdx;
thread_local dim3 blockDim;
thread_local dim3 gridDim;

const char* cudaGetErrorString(cudaError_t) { return "an error of the emulated GPU"; }

namespace pccl::emulator {
namespace {

class Block {
   public:
    Block(unsigned threads, const std::function<void()>& body) : body_(body), threads_(threads) {
        std::byte* const stacks = stacks_of_this_thread_.take(threads * kStackBytes);
        for (unsigned i = 0; i < threads; ++i)
            threads_[i].fiber.prepare(stacks + i * kStackBytes, kStackBytes,
                                      [] { current().run_thread(); });
        const std::span<Thread> all = threads_;
        all_ = {all, all.size()};
        for (std::size_t first = 0; first < all.size(); first += kWarp) {
            const auto warp = all.subspan(first, std::min(kWarp, all.size() - first));
            warps_.push_back({warp, warp.size()});
        }
    }

    /// Whether all threads awaited the launch ahead.
    [[nodiscard]] bool run() {
        current_ = this;
        // Another one goes first each time, so that nothing relies on an order.
        std::minstd_rand first(blockIdx.x + 1);
        for (; all_.alive > 0; pause()) go_round(first() % threads_.size());
        ends_.acquire();
        return std::ranges::all_of(threads_, &Thread::has_awaited);
    }

    void await_launch_ahead() { running_->has_awaited = true; }

    void leave() { running_->fiber.leave(); }
    void go_on() { has_gone_on_ = true; }

    bool meet(bool reported) { return meet_at(all_, reported); }
    bool meet_warp(bool reported) { return meet_at(warp_of(*running_), reported); }

    static Block& current() { return *current_; }

   private:
    // Kernels keep what they hold in registers, and compilers do not inline all of it here. What
    // all threads touch must not lie a power of two apart: it would share a few lines of the
    // caches.
    static constexpr std::size_t kStackBytes = (std::size_t{64} << 10) + 192;

    enum class State { kReady, kMeeting, kEnded };
    struct Thread {
        Fiber fiber;
        State state = State::kReady;
        bool has_awaited = false;
    };

    /// Where some of the threads meet.
    struct Meeting {
        std::span<Thread> threads;
        std::size_t alive = 0;
        std::size_t waiting = 0;   // for the others
        bool all_reported = true;  // of those
        bool outcome = true;       // of the last time
        Order order{};

        void end() {
            if (waiting == 0 || waiting < alive) return;
            for (Thread& thread : threads)
                if (thread.state == State::kMeeting) thread.state = State::kReady;
            outcome = std::exchange(all_reported, true);
            waiting = 0;
        }
    };
    static constexpr std::size_t kWarp = 32;

    Meeting& warp_of(const Thread& thread) {
        return warps_[static_cast<std::size_t>(&thread - threads_.data()) / kWarp];
    }

    /// Lets other blocks run: for longer, the longer all that threads did was to poll. A launch of
    /// a group can be a thousand blocks, on two cores, which those that poll must leave to the
    /// others.
    void pause() {
        using std::chrono::microseconds;
        constexpr microseconds kLeast{50};
        constexpr microseconds kMost{10'000};
        const auto now = std::chrono::steady_clock::now();
        if (std::exchange(has_gone_on_, false)) went_on_at_ = now;
        const auto share = std::chrono::duration_cast<microseconds>(now - went_on_at_) / 4;
        if (share < kLeast) return std::this_thread::yield();
        std::this_thread::sleep_for(std::min(share, kMost));
    }

    bool meet_at(Meeting& meeting, bool reported) {
        go_on();
        meeting.all_reported = meeting.all_reported && reported;
        running_->state = State::kMeeting;
        ++meeting.waiting;
        meeting.order.reported();
        meeting.end();
        leave();
        meeting.order.acquire();
        return meeting.outcome;
    }

    void go_round(std::size_t first) {
        for (std::size_t i = 0; i < threads_.size(); ++i) {
            const std::size_t index = (first + i) % threads_.size();
            if (threads_[index].state == State::kReady) resume(index);
        }
    }

    void resume(std::size_t index) {
        running_ = &threads_[index];
        threadIdx.x = static_cast<unsigned>(index);
        running_->fiber.enter();
    }

    void run_thread() {
        body_();
        running_->state = State::kEnded;
        go_on();
        ends_.reported();
        for (Meeting* const meeting : {&all_, &warp_of(*running_)}) {
            --meeting->alive;
            meeting->end();
        }
        leave();
    }

    static thread_local Block* current_;
    static thread_local StackMemory stacks_of_this_thread_;

    const std::function<void()>& body_;
    std::vector<Thread> threads_;
    Thread* running_ = nullptr;
    Meeting all_;
    std::vector<Meeting> warps_;
    Order ends_;
    bool has_gone_on_ = true;  // any thread, in this round: it met others, moved data or ended
    std::chrono::steady_clock::time_point went_on_at_;
};

thread_local Block* Block::current_ = nullptr;
thread_local StackMemory Block::stacks_of_this_thread_;

std::atomic<bool> ll128_is_torn = false;
thread_local unsigned most_blocks = 0;
thread_local std::function<void()> hook_of_launcher;
thread_local const std::function<void()>* hook_of_block = nullptr;
thread_local std::vector<std::unique_ptr<Worker>> workers_of_launcher;  // one for each block

}  // namespace

void call_before_packets(std::function<void()> hook) { hook_of_launcher = std::move(hook); }

void before_packet() {
    Block::current().go_on();
    if (hook_of_block != nullptr && *hook_of_block) (*hook_of_block)();
}

unsigned take_most_blocks() { return std::exchange(most_blocks, 0); }

bool run_grid(unsigned blocks, unsigned threads, const std::function<void()>& body) {
    most_blocks = std::max(most_blocks, blocks);
    std::atomic<bool> have_awaited = true;
    auto& workers = workers_of_launcher;
    while (workers.size() < blocks) workers.push_back(std::make_unique<Worker>());
    for (unsigned index = 0; index < blocks; ++index)
        workers[index]->start([&, index, hook = &hook_of_launcher] {
            hook_of_block = hook;
            blockIdx = {index, 0, 0};
            blockDim = dim3(threads);
            gridDim = dim3(blocks);
            if (!Block(threads, body).run()) have_awaited = false;
        });
    for (unsigned index = 0; index < blocks; ++index) workers[index]->await_end();
    return have_awaited;
}

void await_launch_ahead() { Block::current().await_launch_ahead(); }

void yield() { Block::current().leave(); }

bool meet(bool reported) { return Block::current().meet(reported); }
bool meet_warp(bool reported) { return Block::current().meet_warp(reported); }

void tear_ll128_lines(bool torn) { ll128_is_torn = torn; }
bool tears_ll128_lines() { return ll128_is_torn.load(std::memory_order_relaxed); }

}  // namespace pccl::emulator
