// Runs one function as every rank of a group: threads of this process, each with a runtime of its
// own, so that they meet over real sockets and shared memory as processes would.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "csrc/comm/communicator.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::comm {

/// A store in memory, shared by threads.
class MemoryStore final : public Store {
   public:
    Status set(const std::string& key, const std::string& value) override;
    Result<std::string> get(const std::string& key, Deadline deadline) override;
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Status remove(const std::string& key) override;

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string> values_;
};

struct RanksOptions {
    int size = 2;
    transport::TransportFlags transports = transport::TransportKind::kShm;
    std::chrono::milliseconds timeout{60'000};
};

/// Fails the running test where a communicator cannot be made; returns when all ranks are through.
void run_ranks(const RanksOptions& options, const std::function<void(Communicator&)>& body);

}  // namespace pccl::comm
