// The two sides of a comparison on one lab: the real thing (PyTorch over gloo, or Open MPI), told
// what to do while it lives, and ghostrank, started anew for every play. Both run as one process
// per host.
//
// Units: seconds, bytes. Threading: one thread. What goes wrong is thrown as std::runtime_error
// with what the process said.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/lab/lab.h"

namespace ghostrank::fidelity {

using nlohmann::json;

// Layers whose compute is a sleep; times in microseconds, as ghostrank's `kind: layers` has them.
struct SleepingLayer {
  std::vector<int> parameters;
  double forward_us = 0, backward_us = 0;
};
struct SleepingModel {
  std::vector<SleepingLayer> layers;
  double optimizer_us = 0;
  double bucket_cap_mb = 25;
};
json to_json(const SleepingModel& model);  // what torch_worker.py reads; layers as a job has them

// Real processes, one on each of the hosts 0 .. size-1, that are told what to do line by line and
// answer every line with one of JSON; before the first order each says hello.
class Workers {
 public:
  // `launch` starts the processes; orders and replies are where each reads and writes.
  Workers(testing::Lab& lab, int size, const std::function<std::vector<pid_t>()>& launch);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  static std::string orders(testing::Lab& lab, int host);   // a pipe
  static std::string replies(testing::Lab& lab, int host);  // a file

  int size() const { return size_; }
  const json& hello() const { return hello_; }  // of rank 0
  // The answers of all ranks to one order.
  std::vector<json> ask(const std::string& order);

 private:
  std::vector<json> await(std::size_t line);

  testing::Lab& lab_;
  const int size_;
  std::size_t answered_ = 0;
  std::vector<int> orders_;  // file descriptors
  std::vector<pid_t> processes_;
  json hello_;
};

// PyTorch, training the model under DistributedDataParallel: torch_worker.py, whose hello has
// `torch` and `buckets`.
Workers torch_workers(testing::Lab& lab, int size, const SleepingModel& model);
// Open MPI, started by its own mpirun, over TCP with every message eager: mpi_worker.cpp, whose
// hello has `version`. Throws std::runtime_error where it was not built.
Workers mpi_workers(testing::Lab& lab, int size);

// Where ghostrank's processes meet: PyTorch's processes hold testing::kPort all the while.
inline constexpr int kPlayPort = testing::kPort + 1;

// `ghostrank VERB ARGUMENTS --json ..` on hosts 0 .. size-1, or on host 0 alone with size 1: what
// process 0 wrote.
inline constexpr std::chrono::seconds kLongestPlay{120};
json play(testing::Lab& lab, int size, const std::string& arguments,
          std::chrono::seconds longest = kLongestPlay);

// TCP payload acknowledged so far, by (source, target) host, without that of the port `except`,
// where processes meet. Waits until what was sent has been acknowledged.
using Bytes = std::map<std::pair<int, int>, double>;
Bytes payload_sent(testing::Lab& lab, int size, int except = testing::kPort);

// From now on SIGINT and SIGTERM make who waits for a process throw, so that labs are removed.
void end_on_signals();

double median(std::vector<double> values);

}  // namespace ghostrank::fidelity
