// SPDX-License-Identifier: Apache-2.0

// One-sided reads and writes between two processes over shared memory, beside memcpy within one and
// process_vm_readv(2) as it is: how long they take, and what part of the bare copy's rate is left.
//
//     rma_benchmark                                   # a table
//     rma_benchmark --benchmark_out=rma.json          # and every figure
//     rma_benchmark --benchmark_filter='/4096/'
//
// "mapped" is memory in a file that this process maps, "kernel" any other. Figures are medians of
// repetitions that take turns. A list is of 512 pieces of 4 KiB, none beside its neighbour.
#include <benchmark/benchmark.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/transport/control/socket_control_plane.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/shm/shm_transport.h"

namespace {

using namespace pccl::transport;

constexpr GroupId kGroup{1};
constexpr Secret kSecret{2};
constexpr std::size_t kMost = std::size_t{64} << 20;
constexpr std::size_t kBlock = 4096;
constexpr std::size_t kBlocks = 512;
constexpr std::array<std::size_t, 4> kSizes{4096, 65536, std::size_t{1} << 20, kMost};

template <typename T>
T need(pccl::Result<T> result) {
    if (result.is_ok()) return std::move(result).value();
    std::fprintf(stderr, "rma_benchmark: %s\n", result.status().to_string().c_str());
    std::exit(1);
}

/// One of the two processes.
class Peer final : public ControlHost, public LinkReceiver {
   public:
    std::optional<Secret> secret_of(const GroupId&) override { return kSecret; }
    std::string answer(const LinkRequest&) override { return {}; }
    void noticed(const LinkRequest&, const pccl::Status&) override {}
    void arrived(Arrival arrival) override { transport_.accept(std::move(arrival), *this); }
    void accepted(const LinkRequest&, std::unique_ptr<RecvLink> link) override {
        streams_.in = std::move(link);
    }
    void refused(std::string_view, const pccl::Status& why) override {
        std::fprintf(stderr, "rma_benchmark: refused: %s\n", why.to_string().c_str());
    }
    // It looks all the time.
    pccl::Status watch(int) override { return pccl::Status::ok(); }
    void unwatch(int) override {}

    [[nodiscard]] std::string address() const {
        pccl::ByteWriter out;
        PeerAddress{.control = control_->address(),
                    .links = {{TransportKind::kShm, transport_.addresses()}}}
            .write(out);
        return out.take();
    }
    std::unique_ptr<RmaLink> connect(pccl::Rank self, const std::string& peer) {
        const LinkRequest request{
            .group = kGroup, .source = self, .destination = 1 - self, .group_size = 2};
        pccl::ByteReader in(peer);
        const auto pending_connect =
            need(transport_.connect(need(PeerAddress::read(in)), request, kSecret));
        while (streams_.out == nullptr || streams_.in == nullptr) {
            if (streams_.out == nullptr) streams_.out = need(pending_connect->advance());
            control_->advance(*this);
            transport_.advance(*this);
        }
        return need(rma_->connect(std::move(streams_)));
    }
    std::unique_ptr<Registration> add(const Mapping& memory) {
        std::memset(memory.memory().data(), 1, memory.memory().size());
        return need(rma_->add({.data = memory.memory().data(),
                               .bytes = memory.memory().size(),
                               .file = memory.file()}));
    }

   private:
    std::unique_ptr<Waiter> waiter_ = need(Waiter::create());
    std::unique_ptr<SocketControlPlane> control_ =
        need(SocketControlPlane::create({.between_hosts = false}));
    shm::ShmTransport transport_{*waiter_, need(control_->within_host())};
    std::shared_ptr<RmaTransport> rma_ = need(transport_.one_sided());
    RmaStreams streams_;
};

/// What the owner tells before it sleeps.
struct Offer {
    std::array<char, 256> address;
    std::array<char, 256> mapped;
    std::array<char, 256> plain;
    std::uint64_t where;  // its plain memory
};

void keep(std::array<char, 256>& into, const std::string& text) {
    into[0] = static_cast<char>(text.size());
    std::memcpy(into.data() + 1, text.data(), text.size());
}
std::string kept(const std::array<char, 256>& from) {
    return {from.data() + 1, static_cast<std::size_t>(static_cast<unsigned char>(from[0]))};
}

[[noreturn]] void own(int up, int down) {
    Peer peer;
    const Mapping mapped = need(Mapping::shareable("benchmark", kMost));
    const Mapping plain = need(Mapping::anonymous(kMost));
    const auto first = peer.add(mapped);
    const auto second = peer.add(plain);
    Offer offer{};
    keep(offer.address, peer.address());
    keep(offer.mapped, serialise(first->descriptor()));
    keep(offer.plain, serialise(second->descriptor()));
    offer.where = reinterpret_cast<std::uint64_t>(plain.memory().data());
    if (::write(up, &offer, sizeof offer) != sizeof offer) std::exit(1);
    std::array<char, 256> address{};
    if (::read(down, address.data(), address.size()) != 256) std::exit(1);
    const auto link = peer.connect(1, kept(address));
    for (;;) ::pause();
}

/// The initiator's side.
struct Bench {
    Mapping memory = need(Mapping::anonymous(kMost));
    Mapping other = need(Mapping::anonymous(kMost));
    Peer peer;
    std::unique_ptr<Registration> here = peer.add(memory);
    pid_t owner = 0;
    Offer offer{};
    pccl::abi::MemoryDescriptor mapped{};
    pccl::abi::MemoryDescriptor plain{};
    std::unique_ptr<RmaLink> link;

    void start() {
        std::memset(other.memory().data(), 1, kMost);
        std::array<int, 2> up{};
        std::array<int, 2> down{};
        if (::pipe(up.data()) != 0 || ::pipe(down.data()) != 0) std::exit(1);
        owner = ::fork();
        if (owner == 0) own(up[1], down[0]);
        if (::read(up[0], &offer, sizeof offer) != sizeof offer) std::exit(1);
        std::array<char, 256> address{};
        keep(address, peer.address());
        if (::write(down[1], address.data(), address.size()) != 256) std::exit(1);
        link = peer.connect(0, kept(offer.address));
        mapped = need(parse_memory_descriptor(kept(offer.mapped)));
        plain = need(parse_memory_descriptor(kept(offer.plain)));
    }
    void stop() const {
        ::kill(owner, SIGKILL);
        ::waitpid(owner, nullptr, 0);
    }
    void move(RmaOp op, std::span<const RmaPiece> pieces) const {
        if (need(link->post(op, pieces, 1)) != pieces.size()) std::exit(1);
        RmaCompletion reported;
        while (need(link->poll({&reported, 1})) == 0) {
        }
        if (reported.status.is_ok()) return;
        std::fprintf(stderr, "rma_benchmark: %s\n", reported.status.to_string().c_str());
        std::exit(1);
    }
};

void count(benchmark::State& state, std::size_t bytes) {
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void run_memcpy(benchmark::State& state, const Bench& bench, std::size_t bytes) {
    for (auto _ : state) {
        std::memcpy(bench.memory.memory().data(), bench.other.memory().data(), bytes);
        benchmark::ClobberMemory();
    }
    count(state, bytes);
}

void run_readv(benchmark::State& state, const Bench& bench, std::size_t bytes) {
    const iovec to{bench.memory.memory().data(), bytes};
    const iovec from{reinterpret_cast<void*>(bench.offer.where), bytes};  // NOLINT: the owner's
    for (auto _ : state)
        if (::process_vm_readv(bench.owner, &to, 1, &from, 1, 0) != static_cast<ssize_t>(bytes))
            std::exit(1);
    count(state, bytes);
}

void run_rma(benchmark::State& state, const Bench& bench, RmaOp op,
             const pccl::abi::MemoryDescriptor* remote, std::size_t bytes) {
    const RmaPiece piece{.local = bench.here.get(), .remote = remote, .bytes = bytes};
    for (auto _ : state) bench.move(op, {&piece, 1});
    count(state, bytes);
}

/// The place of block i of a list: every second one, from the end.
std::size_t place(std::size_t i) { return 2 * (kBlocks - 1 - i) * kBlock; }

void run_list_memcpy(benchmark::State& state, const Bench& bench) {
    for (auto _ : state) {
        for (std::size_t i = 0; i < kBlocks; ++i)
            std::memcpy(bench.memory.memory().data() + i * kBlock,
                        bench.other.memory().data() + place(i), kBlock);
        benchmark::ClobberMemory();
    }
    count(state, kBlocks * kBlock);
}

void run_list_readv(benchmark::State& state, const Bench& bench) {
    std::vector<iovec> to;
    std::vector<iovec> from;
    for (std::size_t i = 0; i < kBlocks; ++i) {
        to.push_back({bench.memory.memory().data() + i * kBlock, kBlock});
        from.push_back({reinterpret_cast<void*>(bench.offer.where + place(i)), kBlock});  // NOLINT
    }
    for (auto _ : state)
        if (::process_vm_readv(bench.owner, to.data(), kBlocks, from.data(), kBlocks, 0) < 0)
            std::exit(1);
    count(state, kBlocks * kBlock);
}

void run_list_rma(benchmark::State& state, const Bench& bench, RmaOp op,
                  const pccl::abi::MemoryDescriptor* remote) {
    std::vector<RmaPiece> pieces;
    for (std::size_t i = 0; i < kBlocks; ++i)
        pieces.push_back({.local = bench.here.get(),
                          .at = i * kBlock,
                          .remote = remote,
                          .there = place(i),
                          .bytes = kBlock});
    for (auto _ : state) bench.move(op, pieces);
    count(state, kBlocks * kBlock);
}

template <typename Function, typename... Args>
void add(const std::string& name, Function function, const Args&... args) {
    benchmark::RegisterBenchmark(name.c_str(), function, args...)
        ->Repetitions(7)
        ->ReportAggregatesOnly(true)
        ->MinTime(0.05)
        ->UseRealTime();
}

void add_all(const Bench& bench) {
    for (const std::size_t bytes : kSizes) {
        const std::string size = "/" + std::to_string(bytes);
        add("memcpy" + size, [&bench, bytes](auto& state) { run_memcpy(state, bench, bytes); });
        add("readv" + size, [&bench, bytes](auto& state) { run_readv(state, bench, bytes); });
        for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite}) {
            const std::string verb = op == RmaOp::kRead ? "read_" : "write_";
            add(verb + "mapped" + size, [&bench, op, bytes](auto& state) {
                run_rma(state, bench, op, &bench.mapped, bytes);
            });
            add(verb + "kernel" + size, [&bench, op, bytes](auto& state) {
                run_rma(state, bench, op, &bench.plain, bytes);
            });
        }
    }
    add("memcpy/list", [&bench](auto& state) { run_list_memcpy(state, bench); });
    add("readv/list", [&bench](auto& state) { run_list_readv(state, bench); });
    for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite}) {
        const std::string verb = op == RmaOp::kRead ? "read_" : "write_";
        add(verb + "mapped/list",
            [&bench, op](auto& state) { run_list_rma(state, bench, op, &bench.mapped); });
        add(verb + "kernel/list",
            [&bench, op](auto& state) { run_list_rma(state, bench, op, &bench.plain); });
    }
}

/// Collects medians, and prints what each is of the bare copy's rate.
class RatioReporter final : public benchmark::BenchmarkReporter {
   public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            if (run.aggregate_name != "median") continue;
            const std::string name = run.run_name.function_name;
            const std::size_t slash = name.find('/');
            rows_[name.substr(slash + 1)][name.substr(0, slash)] = run.GetAdjustedRealTime() / 1e3;
        }
    }
    void Finalize() override {
        std::printf("%-10s %-13s %12s %12s %12s\n", "bytes", "what", "us", "of memcpy", "of readv");
        for (const auto& [size, figures] : rows_)
            for (const auto& [what, us] : figures)
                std::printf("%-10s %-13s %12.3f %11.2fx %11.2fx\n", size.c_str(), what.c_str(), us,
                            ratio(figures, "memcpy", us), ratio(figures, "readv", us));
    }

   private:
    static double ratio(const std::map<std::string, double>& figures, const char* bare, double us) {
        const auto found = figures.find(bare);
        return found == figures.end() ? 0 : found->second / us;
    }
    std::map<std::string, std::map<std::string, double>> rows_;  // us, by size and name
};

}  // namespace

int main(int argc, char** argv) {
    std::vector<char*> arguments(argv, argv + argc);
    std::string interleave = "--benchmark_enable_random_interleaving=true";
    arguments.insert(arguments.begin() + 1, interleave.data());
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
    Bench bench;
    bench.start();
    add_all(bench);
    RatioReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    bench.stop();
    return 0;
}
