// SPDX-License-Identifier: Apache-2.0

// The environment, and the small languages of its values. Input: lines of KEY=VALUE.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/transport_flags.h"

namespace {

std::map<std::string, std::string> environment_from(std::string_view text) {
    std::map<std::string, std::string> environment;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        environment.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    return environment;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace pccl;  // NOLINT(google-build-using-namespace): one function
    const auto environment = environment_from({reinterpret_cast<const char*>(data), size});
    std::vector<std::string> warnings;
    const Config config = parse_config(
        [&](const char* key) -> const char* {
            const auto found = environment.find(key);
            return found == environment.end() ? nullptr : found->second.c_str();
        },
        warnings);
    if (config.connect_timeout.count() < 1 || config.peer_timeout > kLongestPeerTimeout)
        std::abort();
    if (config.tcp_sockets < 1 || config.tcp_sockets > 16) std::abort();
    warnings.insert(warnings.end(), config.unusable.begin(), config.unusable.end());
    for (const std::string& warning : warnings)
        if (warning.find('\n') != std::string::npos) std::abort();
    static_cast<void>(transport::TransportFlags::parse(config.transports));
    static_cast<void>(sys::choose_interface({}, config.socket_ifname));
    return 0;
}
