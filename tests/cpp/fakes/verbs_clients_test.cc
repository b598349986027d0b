// SPDX-License-Identifier: Apache-2.0

// Debian's own programs, compiled against rdma-core, run on the fake libibverbs: its ABI is right.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cpp/fakes/verbs_processes.h"

namespace pccl::fakes {
namespace {

std::string folder_of_fake() {
    Dl_info info{};
    ::dladdr(::dlsym(RTLD_DEFAULT, "fake_verbs_progress"), &info);
    return std::filesystem::canonical(info.dli_fname).parent_path();
}

int unused_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length), 0);
    ::close(socket);
    return ntohs(address.sin_port);
}

class VerbsFakeClients : public ::testing::Test {
   protected:
    void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "a program without sanitizers cannot load the fake that has them";
#endif
    }

    // Whether a program is there; the test is skipped otherwise.
    static bool has(const std::string& program) {
        return std::filesystem::exists("/usr/bin/" + program);
    }

    // Runs a shell's command on the fake; its exit status, and what it printed.
    int run(const std::string& command) {
        const std::string to = fabric_.path() + "/output";
        const std::string line =
            "export LD_LIBRARY_PATH=" + folder_of_fake() + " FAKE_VERBS_FABRIC=" + fabric_.path() +
            " FAKE_VERBS_DEVICES=fake0; { " + command + "; } > " + to + " 2>&1";
        const int status = std::system(line.c_str());  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
        std::ifstream file(to);
        std::ostringstream text;
        text << file.rdbuf();
        output_ = text.str();
        return WEXITSTATUS(status);
    }

    // Runs a program twice, as a server and as a client that tries again until the server listens.
    void run_pair(const std::string& program) {
        const std::string line = "timeout 30 " + program + " -p " + std::to_string(unused_port());
        EXPECT_EQ(run(line + " & for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2; " + line +
                      " 127.0.0.1 && wait $! && exit 0; done; exit 1"),
                  0)
            << program << "\n"
            << output_;
    }

    FabricFolder fabric_;
    std::string output_;
};

TEST_F(VerbsFakeClients, DevinfoShowsTheDevice) {
    if (!has("ibv_devinfo")) GTEST_SKIP() << "there is no ibv_devinfo (Debian's ibverbs-utils)";
    ASSERT_EQ(run("ibv_devinfo -v"), 0) << output_;
    for (const char* line :
         {"fake0", "PORT_ACTIVE (4)", "::ffff:10.77.0.1, RoCE v2", "active_mtu:\t\t4096 (5)"}) {
        EXPECT_NE(output_.find(line), std::string::npos) << line << "\n" << output_;
    }
}

TEST_F(VerbsFakeClients, PingPongRuns) {
    if (!has("ibv_rc_pingpong"))
        GTEST_SKIP() << "there is no ibv_rc_pingpong (Debian's ibverbs-utils)";
    run_pair("ibv_rc_pingpong -g 1 -n 100 -c");
    run_pair("ibv_rc_pingpong -g 3 -n 100 -e -c");
    run_pair("ibv_rc_pingpong -g 3 -n 100 -e -N");
}

TEST_F(VerbsFakeClients, PerftestRuns) {
    if (!has("ib_write_bw")) GTEST_SKIP() << "there is no ib_write_bw (Debian's perftest)";
    for (const char* program :
         {"ib_write_bw -n 500", "ib_write_bw -n 500 -q 4 --use_old_post_send", "ib_read_bw -n 500",
          "ib_send_bw -n 500 -e", "ib_read_lat -n 100", "ib_atomic_bw -n 100"}) {
        run_pair(std::string(program) + " -d fake0 -x 3");
    }
}

// rdma-core's own tests of providers. What the fake does not have (UD, XRC, windows), they skip.
TEST_F(VerbsFakeClients, TestsOfRdmaCorePass) {
    const std::string tests = "/usr/share/doc/rdma-core/tests";
    if (!std::filesystem::exists(tests))
        GTEST_SKIP() << "there is no " << tests << " (Debian's rdma-core)";
    if (run("/usr/bin/python3 -c 'import pyverbs.device'") != 0) {
        GTEST_SKIP() << "there is no pyverbs (Debian's python3-pyverbs): " << output_;
    }
    std::string modules;
    for (const char* module : {"addr", "atomic", "cq", "cq_events", "cqex", "device", "mr", "pd",
                               "qp", "qpex", "relaxed_ordering"}) {
        modules += std::string(" tests.test_") + module;
    }
    EXPECT_EQ(run("cd " + fabric_.path() + " && cp -r " + tests +
                  " . && gunzip -rq tests; timeout 60 /usr/bin/python3 "
                  "tests/run_tests.py --dev fake0 --gid 3" +
                  modules),
              0)
        << output_;
    EXPECT_NE(output_.find("\nOK"), std::string::npos) << output_;
    EXPECT_NE(output_.find("Ran 1"), std::string::npos) << "a hundred of them: " << output_;
}

}  // namespace
}  // namespace pccl::fakes
