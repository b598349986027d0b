// SPDX-License-Identifier: Apache-2.0

// Drives a net plug-in of NCCL from two processes, as NCCL does, and measures it:
//
//     net_driver PLUGIN a FOLDER [options] &  net_driver PLUGIN b FOLDER [options]
//
// The processes exchange handles through files of FOLDER, which may be in two network namespaces.
// Each sends to the other over a communicator of its own. Bytes are checked unless measured.
//
//     --abi N        version of the interface, 6 to 12 (12)
//     --sizes A,B    bytes of messages (a list for tests)
//     --bytes N      total bytes of each measurement (256 MiB)
//     --window N     requests in flight (8)
//     --latency      measures the half of a round trip of each size
//     --throughput   measures messages from a to b
//     --hold MS      waits between the messages of a check
//     --seconds S    gives up (60)

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "csrc/abi/net_plugin/common.h"
#include "csrc/abi/net_plugin/v10.h"
#include "csrc/abi/net_plugin/v11.h"
#include "csrc/abi/net_plugin/v12.h"
#include "csrc/abi/net_plugin/v6.h"
#include "csrc/abi/net_plugin/v7.h"
#include "csrc/abi/net_plugin/v8.h"
#include "csrc/abi/net_plugin/v9.h"

namespace {

namespace abi = pccl::abi::net_plugin;
using Time = std::chrono::steady_clock;

struct DriverOptions {
    std::string plugin;
    bool is_a = false;
    std::filesystem::path folder;
    int version = abi::kNewestVersion;
    std::vector<std::size_t> sizes{0,    1,     7,      8,      128,     129,     1000,    4096,
                                   5000, 65536, 262144, 262145, 1000003, 4194304, 67108864};
    std::size_t bytes = std::size_t{256} << 20U;
    std::size_t window = 8;
    bool latency = false;
    bool throughput = false;
    int hold_ms = 0;
    int seconds = 60;
};

DriverOptions options;
Time::time_point end_of_time;

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", options.is_a ? "a" : "b", why.c_str());
    std::_Exit(1);
}

void check_time(const char* what) {
    if (Time::now() > end_of_time) fail(std::string("the time is over while ") + what);
}

void require(abi::Result result, const char* call) {
    if (result != abi::Result::kSuccess)
        fail(std::string(call) + " returned " + std::to_string(static_cast<int>(result)));
}

__attribute__((format(printf, 5, 6))) void log_line(abi::LogLevel level, unsigned long /*flags*/,
                                                    const char* /*file*/, int /*line*/,
                                                    const char* format, ...) {
    if (level > abi::LogLevel::kInfo ||
        (level == abi::LogLevel::kInfo && !std::getenv("NET_DRIVER_INFO")))
        return;
    std::array<char, 2048> text{};
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "%s: log: %s\n", options.is_a ? "a" : "b", text.data());
}

abi::Result no_profiler(void** /*event*/, int /*type*/, void* /*parent*/, std::int64_t /*plugin*/,
                        void* /*data*/) {
    return abi::Result::kSuccess;
}

void put(const std::string& name, const void* bytes, std::size_t count) {
    const auto path = options.folder / name;
    const auto draft = options.folder / (name + ".new");
    std::ofstream(draft, std::ios::binary)
        .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
    std::filesystem::rename(draft, path);
}

void get(const std::string& name, void* bytes, std::size_t count) {
    const auto path = options.folder / name;
    while (!std::filesystem::exists(path)) {
        check_time("waiting for the other process");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    std::ifstream(path, std::ios::binary)
        .read(static_cast<char*>(bytes), static_cast<std::streamsize>(count));
}

std::byte stamp(std::size_t index, std::size_t message) {
    return static_cast<std::byte>((index * 2654435761U + message * 40503U) >> 13U);
}

/// One plug-in by one version of its interface.
template <typename Net>
class Driver {
   public:
    explicit Driver(const Net& net) : net_(net) {
        if constexpr (std::is_invocable_v<decltype(net.init), abi::Logger>)
            require(net.init(log_line), "init");
        else if constexpr (std::is_invocable_v<decltype(net.init), abi::Logger,
                                               abi::ProfilerCallback>)
            require(net.init(log_line, no_profiler), "init");
        else
            init_with_context();
        int count = 0;
        require(net.devices(&count), "devices");
        if (count < 1) fail("the plug-in has no device");
        connect();
    }
    ~Driver() {
        require(net_.close_send(send_), "closeSend");
        require(net_.close_recv(recv_), "closeRecv");
        if constexpr (requires { net_.finalize; })
            if (net_.finalize != nullptr) require(net_.finalize(context_), "finalize");
    }
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    void check() {
        for (const std::size_t size : options.sizes) exchange(size, options.window);
        exchange(4096, abi::kMaxRequests);
        std::printf("%s: checked\n", options.is_a ? "a" : "b");
    }

    void measure_latency() {
        for (const std::size_t size : options.sizes) {
            const std::size_t rounds =
                std::clamp<std::size_t>(options.bytes / std::max<std::size_t>(size, 1), 20, 20000);
            std::vector<std::byte> buffer(std::max<std::size_t>(size, 1));
            play(buffer, size, rounds / 10 + 5);
            const auto begin = Time::now();
            play(buffer, size, rounds);
            const std::chrono::duration<double, std::micro> taken = Time::now() - begin;
            if (options.is_a)
                std::printf("latency %zu %.2f us\n", size,
                            taken.count() / 2 / static_cast<double>(rounds));
        }
    }

    void measure_throughput() {
        for (const std::size_t size : options.sizes) {
            const std::size_t count =
                std::clamp<std::size_t>(options.bytes / std::max<std::size_t>(size, 1), 1, 200000);
            std::vector<std::byte> buffer(std::max<std::size_t>(size, 1));
            stream(buffer, size, std::min<std::size_t>(count, 8));
            const auto begin = Time::now();
            stream(buffer, size, count);
            const std::chrono::duration<double> taken = Time::now() - begin;
            if (!options.is_a)
                std::printf("throughput %zu %.1f MB/s\n", size,
                            static_cast<double>(size * count) / taken.count() / 1e6);
        }
    }

   private:
    void init_with_context() {
        if constexpr (requires { net_.finalize; }) {
            std::remove_pointer_t<decltype(config_of(net_.init))> config{abi::kUndefined};
            require(net_.init(&context_, 1, &config, log_line, no_profiler), "init");
        }
    }
    template <typename Config>
    static Config* config_of(abi::Result (*)(void**, std::uint64_t, Config*, abi::Logger,
                                             abi::ProfilerCallback)) {
        return nullptr;
    }

    void connect() {
        std::array<char, abi::kHandleBytes> handle{};
        void* listener = nullptr;
        if constexpr (requires { net_.listen(context_, 0, handle.data(), &listener); })
            require(net_.listen(context_, 0, handle.data(), &listener), "listen");
        else
            require(net_.listen(0, handle.data(), &listener), "listen");
        put(options.is_a ? "a" : "b", handle.data(), handle.size());
        std::array<char, abi::kHandleBytes> other{};
        get(options.is_a ? "b" : "a", other.data(), other.size());
        while (send_ == nullptr || recv_ == nullptr) {
            check_time("connecting");
            if (send_ == nullptr) require(connect_once(other.data()), "connect");
            if (recv_ == nullptr) require(accept_once(listener), "accept");
        }
        require(net_.close_listen(listener), "closeListen");
    }

    abi::Result connect_once(void* handle) {
        if constexpr (requires { net_.connect(context_, 0, handle, &send_, nullptr); }) {
            return net_.connect(context_, 0, handle, &send_, nullptr);
        } else if constexpr (requires { net_.connect(0, nullptr, handle, &send_, nullptr); }) {
            return net_.connect(0, nullptr, handle, &send_, nullptr);
        } else if constexpr (requires { net_.connect(0, handle, &send_, nullptr); }) {
            return net_.connect(0, handle, &send_, nullptr);
        } else {
            return net_.connect(0, handle, &send_);
        }
    }
    abi::Result accept_once(void* listener) {
        if constexpr (requires { net_.accept(listener, &recv_, nullptr); })
            return net_.accept(listener, &recv_, nullptr);
        else
            return net_.accept(listener, &recv_);
    }

    void* isend(void* data, std::size_t size) {
        void* request = nullptr;
        while (request == nullptr) {
            check_time("sending");
            if constexpr (requires {
                              net_.isend(send_, data, size, 0, nullptr, nullptr, &request);
                          })
                require(net_.isend(send_, data, size, 0, nullptr, nullptr, &request), "isend");
            else if constexpr (std::is_same_v<decltype(net_.isend), abi::IsendInt>)
                require(net_.isend(send_, data, static_cast<int>(size), 0, nullptr, &request),
                        "isend");
            else
                require(net_.isend(send_, data, size, 0, nullptr, &request), "isend");
        }
        return request;
    }

    void* irecv(void* data, std::size_t size) {
        void* request = nullptr;
        std::array<void*, 1> buffers{data};
        std::array<int, 1> tags{0};
        std::array<void*, 1> handles{};
        std::array<std::size_t, 1> sizes{size};
        std::array<int, 1> int_sizes{static_cast<int>(size)};
        while (request == nullptr) {
            check_time("receiving");
            if constexpr (requires {
                              net_.irecv(recv_, 1, buffers.data(), sizes.data(), tags.data(),
                                         handles.data(), handles.data(), &request);
                          })
                require(net_.irecv(recv_, 1, buffers.data(), sizes.data(), tags.data(),
                                   handles.data(), handles.data(), &request),
                        "irecv");
            else if constexpr (std::is_same_v<decltype(net_.irecv), abi::IrecvInt>)
                require(net_.irecv(recv_, 1, buffers.data(), int_sizes.data(), tags.data(),
                                   handles.data(), &request),
                        "irecv");
            else
                require(net_.irecv(recv_, 1, buffers.data(), sizes.data(), tags.data(),
                                   handles.data(), &request),
                        "irecv");
        }
        return request;
    }

    bool is_done(void* request, int* size) {
        int done = 0;
        require(net_.test(request, &done, size), "test");
        return done != 0;
    }
    void finish(void* request) {
        int size = 0;
        while (!is_done(request, &size)) check_time("testing a request");
    }

    /// Sends and receives `window` messages at a time, in both directions.
    void exchange(std::size_t size, std::size_t window) {
        const std::size_t most = (std::size_t{256} << 20U) / std::max<std::size_t>(size, 1);
        window = std::clamp<std::size_t>(most, 1, window);
        std::vector<std::vector<std::byte>> out(window);
        std::vector<std::vector<std::byte>> in(window);
        std::vector<void*> sends;
        std::vector<void*> receives;
        for (std::size_t i = 0; i < window; ++i) {
            out[i].resize(size + 1);
            in[i].assign(size + 9, std::byte{0x55});
            for (std::size_t at = 0; at < size; ++at) out[i][at] = stamp(at, i);
        }
        for (std::size_t i = 0; i < window; ++i) {
            if (options.hold_ms > 0)
                std::this_thread::sleep_for(std::chrono::milliseconds(options.hold_ms));
            sends.push_back(isend(out[i].data(), size));
            receives.push_back(irecv(in[i].data(), size + 8));
        }
        std::vector<bool> sent(window);
        for (std::size_t done = 0; done < window;) {
            check_time("exchanging messages");
            for (std::size_t i = 0; i < window; ++i) {
                if (!sent[i] && is_done(sends[i], nullptr)) {
                    sent[i] = true;
                    std::ranges::fill(out[i], std::byte{0xee});  // the caller's again
                }
            }
            int got = -1;
            if (!is_done(receives[done], &got)) continue;
            if (got != static_cast<int>(size)) fail("a receive has another size than its send");
            verify(in[done], size, done);
            ++done;
        }
        for (std::size_t i = 0; i < window; ++i)
            if (!sent[i]) finish(sends[i]);
    }
    static void verify(const std::vector<std::byte>& bytes, std::size_t size, std::size_t message) {
        for (std::size_t at = 0; at < bytes.size(); ++at)
            if (bytes[at] != (at < size ? stamp(at, message) : std::byte{0x55}))
                fail("byte " + std::to_string(at) + " of a message of " + std::to_string(size) +
                     " bytes is wrong");
    }

    void play(std::vector<std::byte>& buffer, std::size_t size, std::size_t rounds) {
        for (std::size_t i = 0; i < rounds; ++i) {
            if (options.is_a) finish(isend(buffer.data(), size));
            finish(irecv(buffer.data(), buffer.size()));
            if (!options.is_a) finish(isend(buffer.data(), size));
        }
    }

    /// Sends from a to b, and a byte back at the end.
    void stream(std::vector<std::byte>& buffer, std::size_t size, std::size_t count) {
        std::vector<void*> requests;
        std::size_t first = 0;
        const auto post = [&] {
            return options.is_a ? isend(buffer.data(), size) : irecv(buffer.data(), buffer.size());
        };
        while (first < count) {
            while (requests.size() < count && requests.size() - first < options.window)
                requests.push_back(post());
            int got = 0;
            if (is_done(requests[first], &got)) ++first;
            check_time("streaming");
        }
        std::byte end{};
        finish(options.is_a ? irecv(&end, 1) : isend(&end, 1));
    }

    const Net& net_;
    void* context_ = nullptr;
    void* send_ = nullptr;
    void* recv_ = nullptr;
};

template <typename Net>
void drive(void* library) {
    const std::string symbol = "ncclNetPlugin_v" + std::to_string(options.version);
    const auto* net = static_cast<const Net*>(::dlsym(library, symbol.c_str()));
    if (net == nullptr) fail("the plug-in has no " + symbol);
    Driver<Net> driver(*net);
    if (options.latency) driver.measure_latency();
    if (options.throughput) driver.measure_throughput();
    if (!options.latency && !options.throughput) driver.check();
}

std::vector<std::size_t> numbers_in(std::string text) {
    std::vector<std::size_t> numbers;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        numbers.push_back(std::stoull(text.substr(begin, comma - begin)));
        begin = comma + 1;
    }
    return numbers;
}

void parse_arguments(int argc, char** argv) {
    if (argc < 4) fail("usage: net_driver PLUGIN a|b FOLDER [options]");
    options.plugin = argv[1];
    options.is_a = std::string_view(argv[2]) == "a";
    options.folder = argv[3];
    for (int i = 4; i < argc; ++i) {
        const std::string_view option = argv[i];
        const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : "0"); };
        if (option == "--abi")
            options.version = std::stoi(value());
        else if (option == "--sizes")
            options.sizes = numbers_in(value());
        else if (option == "--bytes")
            options.bytes = std::stoull(value());
        else if (option == "--window")
            options.window = std::stoull(value());
        else if (option == "--hold")
            options.hold_ms = std::stoi(value());
        else if (option == "--seconds")
            options.seconds = std::stoi(value());
        else if (option == "--latency")
            options.latency = true;
        else if (option == "--throughput")
            options.throughput = true;
        else
            fail("unknown option " + std::string(option));
    }
}

}  // namespace

int main(int argc, char** argv) {
    parse_arguments(argc, argv);
    end_of_time = Time::now() + std::chrono::seconds(options.seconds);
    void* const library = ::dlopen(options.plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fail(::dlerror());
    switch (options.version) {
        case 6:
            drive<abi::v6::Net>(library);
            break;
        case 7:
            drive<abi::v7::Net>(library);
            break;
        case 8:
            drive<abi::v8::Net>(library);
            break;
        case 9:
            drive<abi::v9::Net>(library);
            break;
        case 10:
            drive<abi::v10::Net>(library);
            break;
        case 11:
            drive<abi::v11::Net>(library);
            break;
        case 12:
            drive<abi::v12::Net>(library);
            break;
        default:
            fail("the interface has versions 6 to 12");
    }
    return 0;
}
