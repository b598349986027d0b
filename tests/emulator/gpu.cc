#include "tests/emulator/gpu.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/emulator/fiber.h"
#include "tests/emulator/include/cuda_runtime.h"

thread_local uint3 threadIdx;
thread_local uint3 blockIdx;
thread_local dim3 blockDim;
thread_local dim3 gridDim;

const char* cudaGetErrorString(cudaError_t) { return "an error of the emulated GPU"; }

namespace pccl::emulator {
namespace {

class Block {
   public:
    Block(unsigned threads, const std::function<void()>& body)
        : body_(body), stacks_(new std::byte[threads * kStackBytes]), threads_(threads) {
        for (unsigned i = 0; i < threads; ++i)
            threads_[i].fiber.prepare(stacks_.get() + i * kStackBytes, kStackBytes,
                                      [] { current().run_thread(); });
    }

    /// Whether all threads awaited the launch ahead.
    [[nodiscard]] bool run() {
        current_ = this;
        // Another one goes first each time, so that nothing relies on an order.
        std::minstd_rand first(blockIdx.x + 1);
        for (alive_ = threads_.size(); alive_ > 0; std::this_thread::yield())
            go_round(first() % threads_.size());
        ends_.heard();
        return std::ranges::all_of(threads_, &Thread::has_awaited);
    }

    void await_launch_ahead() { running_->has_awaited = true; }

    void leave() { running_->fiber.leave(); }

    bool meet(bool said) {
        all_said_ = all_said_ && said;
        running_->state = State::kMeeting;
        ++meeting_;
        meetings_.said();
        end_meeting();
        leave();
        meetings_.heard();
        return outcome_;
    }

    static Block& current() { return *current_; }

   private:
    // Kernels keep what they hold in registers, and compilers do not inline all of it here.
    static constexpr std::size_t kStackBytes = std::size_t{64} << 10;

    enum class State { kReady, kMeeting, kEnded };
    struct Thread {
        Fiber fiber;
        State state = State::kReady;
        bool has_awaited = false;
    };

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
        --alive_;
        ends_.said();
        end_meeting();
        leave();
    }

    void end_meeting() {
        if (meeting_ == 0 || meeting_ < alive_) return;
        for (Thread& thread : threads_)
            if (thread.state == State::kMeeting) thread.state = State::kReady;
        outcome_ = all_said_;
        all_said_ = true;
        meeting_ = 0;
    }

    static thread_local Block* current_;

    const std::function<void()>& body_;
    std::unique_ptr<std::byte[]> stacks_;
    std::vector<Thread> threads_;
    Thread* running_ = nullptr;
    std::size_t alive_ = 0;
    std::size_t meeting_ = 0;  // threads that wait for the others
    bool all_said_ = true;     // of those
    bool outcome_ = true;      // of the last meeting
    Order meetings_;
    Order ends_;
};

thread_local Block* Block::current_ = nullptr;

thread_local unsigned most_blocks = 0;
thread_local std::function<void()> hook_of_launcher;
thread_local const std::function<void()>* hook_of_block = nullptr;

}  // namespace

void call_before_packets(std::function<void()> hook) { hook_of_launcher = std::move(hook); }

void before_packet() {
    if (hook_of_block != nullptr && *hook_of_block) (*hook_of_block)();
}

unsigned take_most_blocks() { return std::exchange(most_blocks, 0); }

bool run_grid(unsigned blocks, unsigned threads, const std::function<void()>& body) {
    most_blocks = std::max(most_blocks, blocks);
    std::atomic<bool> have_awaited = true;
    std::vector<std::thread> running;
    for (unsigned index = 0; index < blocks; ++index)
        running.emplace_back([&, index, hook = &hook_of_launcher] {
            hook_of_block = hook;
            blockIdx = {index, 0, 0};
            blockDim = dim3(threads);
            gridDim = dim3(blocks);
            if (!Block(threads, body).run()) have_awaited = false;
        });
    for (std::thread& block : running) block.join();
    return have_awaited;
}

void await_launch_ahead() { Block::current().await_launch_ahead(); }

void yield() { Block::current().leave(); }

bool meet(bool said) { return Block::current().meet(said); }

}  // namespace pccl::emulator
