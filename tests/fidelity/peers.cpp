#include "tests/fidelity/peers.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "profiles/median.h"

namespace ghostrank::fidelity {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::Lab;
using testing::read_file;

constexpr seconds kLongest{120};  // per order
[[maybe_unused]] constexpr int kMpiEagerBytes =
    40 << 20;  // above any message of a case, with its header

volatile std::sig_atomic_t signalled = 0;

void end_if_signalled() {
  if (signalled != 0) throw std::runtime_error("ended by signal " + std::to_string(signalled));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!in.eof()) lines.push_back(line);  // a line without an end is still being written
  return lines;
}

// "10.77.0.3:29500" -> 2 and 29500.
std::pair<int, int> host_and_port(const std::string& address) {
  const std::size_t colon = address.rfind(':'), dot = address.rfind('.', colon);
  return {std::stoi(address.substr(dot + 1)) - 1, std::stoi(address.substr(colon + 1))};
}

double number_after(const std::string& line, const std::string& key) {
  const std::size_t at = line.find(" " + key + ":");
  return at == std::string::npos ? 0 : std::stod(line.substr(at + key.size() + 2));
}

struct Counted {
  Bytes bytes;
  bool resting = true;  // no connection has unacknowledged bytes
};

// `ss -tinHO` prints one line per connection: the two queues, local and peer address, and TCP's
// counters.
Counted count(Lab& lab, int size, int except) {
  Counted counted;
  for (int h = 0; h < size; ++h) {
    const std::string file = lab.file("ss");
    testing::shell(lab.in(h, "sh -c 'ss -tinHO state established >" + file + "'"));
    for (const std::string& line : lines_of(read_file(file))) {
      std::istringstream in(line);
      std::string receive, send, local, peer;
      in >> receive >> send >> local >> peer;
      const auto [target, target_port] = host_and_port(peer);
      if (target_port == except || host_and_port(local).second == except) continue;
      counted.bytes[{h, target}] += number_after(line, "bytes_acked");
      counted.resting &= send == "0";
    }
  }
  return counted;
}

}  // namespace

json to_json(const SleepingModel& model) {
  json layers = json::array();
  for (const SleepingLayer& layer : model.layers)
    layers.push_back({{"parameters", layer.parameters},
                      {"forward_us", layer.forward_us},
                      {"backward_us", layer.backward_us}});
  return {{"layers", layers},
          {"optimizer_us", model.optimizer_us},
          {"bucket_cap_mb", model.bucket_cap_mb}};
}

std::string Workers::orders(Lab& lab, int host) {
  return lab.file("orders" + std::to_string(host));
}
std::string Workers::replies(Lab& lab, int host) {
  return lab.file("replies" + std::to_string(host));
}

Workers::Workers(Lab& lab, int size, const std::function<std::vector<pid_t>()>& launch)
    : lab_(lab), size_(size) {
  for (int h = 0; h < size; ++h) {
    const std::string pipe = orders(lab, h);
    std::filesystem::remove(pipe);
    std::filesystem::remove(replies(lab, h));
    if (mkfifo(pipe.c_str(), 0600) != 0) throw std::runtime_error("cannot make " + pipe);
    // O_RDWR: open() does not block, and the worker never sees the end of the file.
    orders_.push_back(open(pipe.c_str(), O_RDWR | O_CLOEXEC));
  }
  processes_ = launch();
  hello_ = await(0).front();
}

Workers::~Workers() {
  for (const int orders : orders_)
    if (write(orders, "quit\n", 5) != 5) continue;  // it ends with the lab
  for (const pid_t pid : processes_) lab_.finish(pid, seconds(10));
  for (const int orders : orders_) close(orders);
}

std::vector<json> Workers::ask(const std::string& order) {
  const std::string line = order + "\n";
  for (const int orders : orders_)
    if (write(orders, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("cannot give an order to a worker");
  return await(++answered_);
}

std::vector<json> Workers::await(std::size_t line) {
  std::vector<json> answers;
  const auto deadline = steady_clock::now() + kLongest;
  while (std::ssize(answers) < size_) {
    const int h = static_cast<int>(answers.size());
    const auto lines = lines_of(read_file(replies(lab_, h)));
    if (lines.size() > line) {
      answers.push_back(json::parse(lines[line]));
      continue;
    }
    end_if_signalled();
    const bool ended =
        std::ranges::any_of(processes_, [&](pid_t pid) { return !lab_.running(pid); });
    if (ended || steady_clock::now() > deadline)
      throw std::runtime_error("the worker on host " + std::to_string(h) +
                               (ended ? " has ended" : " does not answer") +
                               "; it said: " + lab_.output(h) + lab_.output(0));
    std::this_thread::sleep_for(milliseconds(20));
  }
  return answers;
}

Workers torch_workers(Lab& lab, int size, const SleepingModel& model) {
  const std::string description = lab.file("model.json");
  std::ofstream(description) << to_json(model);
  return {
      lab, size, [&] {
        std::vector<pid_t> processes;
        for (int h = 0; h < size; ++h)
          processes.push_back(lab.start_process(
              h, size,
              "GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 /usr/bin/python3 " GHOSTRANK_SOURCE_DIR
              "/tests/fidelity/torch_worker.py " +
                  description + " " + Workers::replies(lab, h) + " <" + Workers::orders(lab, h)));
        return processes;
      }};
}

#ifdef GHOSTRANK_MPI_WORKER
namespace {

// Writes the program that mpirun uses instead of ssh: `AGENT ADDRESS COMMAND..` runs the command on
// the host with that address, under a hostname of its own.
std::string write_agent(Lab& lab, int size) {
  const std::string agent = lab.file("agent");
  std::ofstream out(agent);
  out << "#!/bin/sh\nhost=$1\nshift\ncase $host in\n";
  for (int h = 0; h < size; ++h)
    out << Lab::address(h) << ") exec "
        << lab.in(h, "unshare --uts sh -c \"hostname h" + std::to_string(h) + "; $*\"") << ";;\n";
  out << "esac\nexit 1\n";
  out.close();
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  return agent;
}

}  // namespace

Workers mpi_workers(Lab& lab, int size) {
  std::string hosts;
  for (int h = 0; h < size; ++h) hosts += (h == 0 ? "" : ",") + Lab::address(h) + ":1";
  const std::string eager = std::to_string(kMpiEagerBytes),
                    command = "mpirun --allow-run-as-root --bind-to none -n " +
                              std::to_string(size) + " -H " + hosts + " --mca plm_rsh_agent " +
                              write_agent(lab, size) +
                              " --mca plm_rsh_no_tree_spawn 1 --mca rtc ^hwloc"
                              " --mca oob_tcp_if_include eth0 --mca pml ob1 --mca btl self,tcp"
                              " --mca btl_tcp_if_include eth0 --mca btl_tcp_eager_limit " +
                              eager + " --mca btl_tcp_rndv_eager_limit " + eager +
                              " --mca btl_tcp_free_list_num 2 --mca mpi_yield_when_idle 1"
                              " --mca coll self,basic,libnbc,tuned --mca "
                              "coll_tuned_use_dynamic_rules 1 " GHOSTRANK_MPI_WORKER " " +
                              lab.file("orders") + " " + lab.file("replies");
  return {lab, size, [&] {
            return std::vector<pid_t>{lab.start(
                lab.in(0, "unshare --uts sh -c 'hostname h0; exec " + command + "'"), "host0")};
          }};
}
#else
Workers mpi_workers(Lab&, int) {
  throw std::runtime_error(
      "this build has no worker for Open MPI; install libopenmpi-dev, then "
      "run cmake again");
}
#endif

json play(Lab& lab, int size, const std::string& arguments, seconds longest) {
  const std::string result = lab.file("result.json");
  std::filesystem::remove(result);
  std::vector<pid_t> processes;
  const std::string command = "env GHOSTRANK_PORT=" + std::to_string(kPlayPort) +
                              " " GHOSTRANK_BINARY " " + arguments + " --allow-unfaithful --json " +
                              result;
  if (size == 1)
    processes.push_back(lab.start(lab.in(0, command), "alone"));
  else
    for (int h = 0; h < size; ++h) processes.push_back(lab.start_process(h, size, command));
  for (std::size_t h = 0; h < processes.size(); ++h) {
    int status = -1;
    for (auto left = longest; status == -1 && left.count() > 0; --left) {
      end_if_signalled();
      status = lab.finish(processes[h], seconds(1));
    }
    if (status != 0)
      throw std::runtime_error(
          "ghostrank " + arguments + " ended with " + std::to_string(status) + ": " +
          (size == 1 ? read_file(lab.file("alone")) : lab.output(static_cast<int>(h))));
  }
  return json::parse(read_file(result));
}

Bytes payload_sent(Lab& lab, int size, int except) {
  for (Counted before = count(lab, size, except);;) {
    std::this_thread::sleep_for(milliseconds(100));
    end_if_signalled();  // connections may never rest
    Counted now = count(lab, size, except);
    if (now.resting && now.bytes == before.bytes) return now.bytes;
    before = std::move(now);
  }
}

void end_on_signals() {
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int n) { signalled = n; });
}

double median(std::vector<double> values) {
  if (values.empty()) throw std::runtime_error("no samples");
  return ghostrank::median(std::move(values));
}

}  // namespace ghostrank::fidelity
