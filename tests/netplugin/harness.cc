// SPDX-License-Identifier: Apache-2.0

// Drives a net plug-in of NCCL's ABI from two processes, as NCCL does.
//
//     net_harness PLUGIN [options]                       starts both processes
//     net_harness PLUGIN sender|receiver FOLDER [options]   is one of them: they meet in the folder
//
// Prints one line for each case, and exits with 1 after the first failure. README.md lists the
// options and cases.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/text/text.h"
#include "tests/netplugin/cases.h"

namespace pccl::netplugin {
namespace {

struct Options {
    SideOptions side;
    std::string role;    // empty: both
    std::string folder;  // where they meet
    std::size_t largest = std::size_t{1} << 26U;
    std::vector<std::size_t> sizes;  // empty: all cases
    std::size_t bytes = std::size_t{256} << 20U;
    std::size_t window = 8;
    int hold_ms = 0;
    std::size_t peers = 0;  // whose resources are counted
    bool measures_latency = false;
    bool measures_throughput = false;
};

void check(Side& side, const Options& options) {
    const auto passed = [&](const char* name) {
        side.meet();
        side.begin(name);
        if (side.is_sender()) side.note("ok");
    };
    Exchange both{.sizes = options.sizes, .window = options.window, .hold_ms = options.hold_ms};
    if (options.sizes.empty()) {
        sizes(side, options.largest);
        passed("sizes");
        many_requests(side);
        passed("requests in flight");
        grouped(side);
        passed("grouped receives");
        early_close(side);
        passed("early close");
        both.sizes = {0,    1,     7,      8,      128,     129,     1000,    4096,
                      5000, 65536, 262144, 262145, 1000003, 4194304, 1 << 26U};
        std::erase_if(both.sizes, [&](std::size_t bytes) { return bytes > options.largest; });
    }
    exchange(side, both);
    passed("both directions");
}

int run(const Options& options, int role, std::unique_ptr<Meeting> meeting) {
    Side side(options.side, role, std::move(meeting));
    properties(side);
    const Measurement wanted{
        .sizes = options.sizes.empty() ? std::vector<std::size_t>{8, 4096, 1 << 20, 1 << 26}
                                       : options.sizes,
        .bytes = options.bytes,
        .window = std::min<std::size_t>(options.window,
                                        static_cast<std::size_t>(side.table().max_requests()))};
    if (options.measures_latency) measure_latency(side, wanted);
    if (options.measures_throughput) measure_throughput(side, wanted);
    if (options.peers > 0) count_resources(side, options.peers);
    if (!options.measures_latency && !options.measures_throughput && options.peers == 0)
        check(side, options);
    return 0;
}

int run_one(const Options& options) {
    const bool is_sender = options.role == "sender";
    auto meeting = std::make_unique<FolderMeeting>(
        options.folder, options.role, is_sender ? "receiver" : "sender", options.side.timeout_s);
    return run(options, is_sender ? Side::kSender : Side::kReceiver, std::move(meeting));
}

/// Both processes are children, which open the plug-in by themselves.
int run_both(const Options& options) {
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) return 2;
    std::array<pid_t, 2> children{};
    for (std::size_t role = 0; role < children.size(); ++role) {
        children.at(role) = ::fork();
        if (children.at(role) != 0) continue;
        ::close(sockets.at(1 - role));
        std::exit(run(options, static_cast<int>(role),
                      std::make_unique<SocketMeeting>(sockets.at(role))));
    }
    for (const int socket : sockets) ::close(socket);
    int status = 0;
    for (std::size_t left = children.size(); left > 0; --left) {
        int state = 0;
        static_cast<void>(::wait(&state));
        if (WIFSIGNALED(state)) std::printf("FAIL: signal %d ends a process\n", WTERMSIG(state));
        if (state != 0) status = 1;
    }
    return status;
}

std::vector<std::size_t> numbers_in(const std::string& text) {
    std::vector<std::size_t> numbers;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        numbers.push_back(std::strtoull(text.substr(begin, comma - begin).c_str(), nullptr, 10));
        begin = comma + 1;
    }
    return numbers;
}

/// Reads an option that has a value; returns whether there is such an option.
bool read_value(std::string_view name, const std::string& value, Options& options) {
    const auto number = [&] { return std::strtoull(value.c_str(), nullptr, 10); };
    if (name == "--largest")
        options.largest = number();
    else if (name == "--timeout")
        options.side.timeout_s = std::strtod(value.c_str(), nullptr);
    else if (name == "--abi")
        options.side.version = static_cast<int>(number());
    else if (name == "--sizes")
        options.sizes = numbers_in(value);
    else if (name == "--bytes")
        options.bytes = number();
    else if (name == "--window")
        options.window = number();
    else if (name == "--peers")
        options.peers = number();
    else if (name == "--hold")
        options.hold_ms = static_cast<int>(number());
    else
        return false;
    return true;
}

bool parse(std::vector<std::string> arguments, Options& options) {
    if (arguments.empty()) return false;
    options.side.plugin = arguments[0];
    std::size_t next = 1;
    if (arguments.size() >= 3 && !arguments[1].starts_with("--")) {
        options.role = arguments[1];
        options.folder = arguments[2];
        if (options.role != "sender" && options.role != "receiver") return false;
        next = 3;
    }
    for (; next < arguments.size(); ++next) {
        const std::string& name = arguments[next];
        if (name == "--latency")
            options.measures_latency = true;
        else if (name == "--throughput")
            options.measures_throughput = true;
        else if (next + 1 == arguments.size() || !read_value(name, arguments[++next], options))
            return false;
    }
    return options.largest >= 1 << 20 && options.window >= 1 &&
           options.side.version >= abi::net_plugin::kOldestVersion &&
           options.side.version <= abi::net_plugin::kNewestVersion;
}

}  // namespace
}  // namespace pccl::netplugin

int main(int count, char** arguments) {
    pccl::netplugin::Options options;
    if (!pccl::netplugin::parse({arguments + 1, arguments + count}, options)) {
        std::fputs("net_harness PLUGIN [sender|receiver FOLDER] [options of README.md]\n", stderr);
        return 2;
    }
    return options.role.empty() ? pccl::netplugin::run_both(options)
                                : pccl::netplugin::run_one(options);
}
