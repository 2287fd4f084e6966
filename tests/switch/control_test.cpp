// A running switch on veth pairs, changed over its control socket, the same on every target.
// Skipped without root.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/shell.h"
#include "tests/switch/namespaces.h"

namespace ghostrank::switchml {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kPlan =
    "schema: ghostrank/switch/1\nmac: 02:00:00:00:ff:01\nip: 10.0.0.254\n";

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

test::Outcome command(const std::string& line) {
  return test::shell(GHOSTRANK_BINARY " switch " + line);
}

class SwitchControl : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    if (!net_.made()) GTEST_SKIP() << "network namespaces cannot be made here";
    if (GetParam().starts_with("dpdk") &&
        !fs::exists(fs::path(GHOSTRANK_BINARY).parent_path() / "ghostrank-dpdk"))
      GTEST_SKIP() << "built without DPDK";
    if (GetParam() == "bmv2" &&
        !shell("command -v simple_switch && command -v simple_switch_CLI && command -v p4c-bm2-ss"))
      GTEST_SKIP() << "bmv2 is not on this machine";
    folder_ = fs::path(testing::TempDir()) / ("control." + std::to_string(getpid()));
    fs::create_directories(folder_);
    write("plan.yaml", kPlan);
    const bool xdp = GetParam() == "dpdk_on_xdp";
    const std::string target = GetParam() == "two_cores"        ? "compiled --cores 2"
                               : GetParam() == "dpdk_two_cores" ? "dpdk --cores 2"
                               : xdp                            ? "dpdk"
                                                                : GetParam();
    const std::string ports = xdp ? "xdp:p0,xdp:p1,xdp:p2,xdp:p3" : "p0,p1,p2,p3";
    start("exec ip netns exec " + net_.name(-1) + " " + GHOSTRANK_BINARY + " switch run --target " +
          target + " --plan " + file("plan.yaml") + " --ports " + ports + " --socket " +
          file("socket") + " >" + file("log") + " 2>&1");
    // bmv2's program is compiled first.
    for (int i = 0;
         i < (GetParam() == "bmv2" ? 2400 : 400) && !fs::exists(file("socket")) && runs(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_TRUE(fs::exists(file("socket"))) << read_text(file("log"));
    for (int w = 0; w < kWorkers; ++w) fd_[w] = net_.inside(w, packet_socket);
  }
  void TearDown() override {
    if (switch_ > 0) {
      EXPECT_EQ(ask("stop").status, 0) << read_text(file("log"));
      for (int i = 0; i < 200 && runs(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (runs()) kill(switch_, SIGKILL);
    }
    for (const int fd : fd_) close(fd);
    fs::remove_all(folder_);
  }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }
  test::Outcome ask(const std::string& what, const std::string& argument = {}) const {
    return command(what + " --socket " + file("socket") + " " + argument);
  }
  test::Outcome admit(const std::string& name, int workers, int first_slot, int slots) const {
    std::string text = "name: " + name +
                       "\nelements: 256\nfirst_slot: " + std::to_string(first_slot) +
                       "\nslots: " + std::to_string(slots) + "\nworkers:\n";
    for (int w = 0; w < workers; ++w) {
      char line[80];
      std::snprintf(line, sizeof line, "  - {port: %d, mac: 02:00:00:00:00:%02x, ip: 10.0.0.%d}\n",
                    w % kWorkers, static_cast<unsigned>(w), w + 1);
      text += line;
    }
    write("job.yaml", text);
    return ask("admit", file("job.yaml"));
  }
  void send(int w, int slot, int set, std::int32_t first) const {
    const Bytes frame = chunk(w, slot, set, first, 256);
    ASSERT_EQ(::write(fd_[w], frame.data(), frame.size()), std::ssize(frame));
  }
  // The switch's exit status; -1 if it goes on for 10 s.
  int exit_status() {
    int status = 0;
    for (int i = 0; i < 200; ++i) {
      if (waitpid(switch_, &status, WNOHANG) == switch_) {
        switch_ = -1;
        return WEXITSTATUS(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return -1;
  }
  // Connects to the control socket.
  int connected() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    file("socket").copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  // The first element of the next result for worker w; -1 if none comes.
  int answer(int w, int patience_ms = 5'000) const {
    const Bytes frame = receive(fd_[w], patience_ms);
    return frame.size() == frame_bytes(256) ? element(frame, 0) : -1;
  }

  Namespaces net_;

 private:
  void start(const std::string& line) {
    switch_ = fork();
    if (switch_ == 0) {
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
  }
  bool runs() {
    if (switch_ > 0 && waitpid(switch_, nullptr, WNOHANG) == switch_) switch_ = -1;
    return switch_ > 0;
  }

  fs::path folder_;
  pid_t switch_ = -1;
  std::array<int, kWorkers> fd_{-1, -1, -1, -1};
};

constexpr int kSilence = 300;  // ms without an answer

TEST_P(SwitchControl, AdmitsCountsResetsAndRemovesJobs) {
  send(0, 0, 0, 1);
  EXPECT_EQ(answer(0, kSilence), -1) << "of no job yet";
  ASSERT_EQ(admit("a", 2, 0, 4).status, 0);
  ASSERT_EQ(admit("b", 4, 4, 4).status, 0);
  send(0, 0, 0, 10);
  send(1, 0, 0, 20);
  EXPECT_EQ(answer(0), 30);
  EXPECT_EQ(answer(1), 30);
  for (int w = 0; w < kWorkers; ++w) send(w, 4, 0, 100);
  for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(answer(w), 400);

  const std::string counters = ask("counters").text;
  EXPECT_THAT(counters, HasSubstr(R"("strangers":1)"));
  EXPECT_THAT(
      counters,
      HasSubstr(
          R"({"job":"a","received":2,"collected":1,"duplicates":0,"broadcasts":1,"retransmissions":0,"results":0,"gaps":0,"sent":2})"));
  EXPECT_THAT(counters, HasSubstr(R"({"job":"b","received":4,"collected":3,)"));

  // After a reset, a sum begins anew.
  send(0, 1, 0, 5);
  EXPECT_EQ(answer(0, kSilence), -1);
  EXPECT_EQ(ask("reset", "a").status, 0);
  send(1, 1, 0, 7);
  send(0, 1, 0, 6);
  EXPECT_EQ(answer(0), 13);
  EXPECT_EQ(answer(1), 13);

  EXPECT_EQ(ask("remove", "a").status, 0);
  send(0, 0, 1, 10);
  send(1, 0, 1, 20);
  EXPECT_EQ(answer(0, kSilence), -1) << "of a job that was removed";
  // The removed job's slots are free again and hold no old sums.
  ASSERT_EQ(admit("c", 2, 0, 4).status, 0);
  send(0, 0, 0, 1);
  send(1, 0, 0, 2);
  EXPECT_EQ(answer(0), 3);
  EXPECT_EQ(answer(1), 3);
}

TEST_P(SwitchControl, RefusesWhatDoesNotFitAndSaysWhy) {
  ASSERT_EQ(admit("a", 2, 0, 4).status, 0);
  EXPECT_THAT(admit("a", 2, 8, 4).text, HasSubstr("there is a job 'a' already"));
  EXPECT_THAT(admit("b", 2, 2, 4).text, HasSubstr("give this job other slots"));
  EXPECT_THAT(admit("b", 33, 8, 4).text, HasSubstr("1 to 32 workers, not 33"));
  EXPECT_THAT(admit("b", 2, 16380, 5).text, HasSubstr("do not fit the table"));
  EXPECT_THAT(ask("remove", "nobody").text, HasSubstr("there is no job 'nobody'"));
  if (GetParam().starts_with("dpdk") || GetParam() == "bmv2") {
    EXPECT_THAT(admit("b", 2, 4, 5000).text, HasSubstr("are not free of the program's 4096"));
  }
  EXPECT_EQ(admit("b", 2, 4, 8).status, 0);
}

TEST_P(SwitchControl, EndsWhenAnInterfaceIsGone) {
  ASSERT_TRUE(shell("ip -n " + net_.name(-1) + " link del p2"));
  EXPECT_EQ(exit_status(), 3) << read_text(file("log"));
  EXPECT_THAT(read_text(file("log")), HasSubstr("interface 'p2' is gone"));
}

// Two slow clients: one sends its request byte by byte, the other never reads its answer.
TEST_P(SwitchControl, SumsOnWhileClientsDawdle) {
  ASSERT_EQ(admit("a", 2, 0, 4).status, 0);
  const int slow = connected(), deaf = connected();
  const std::string_view request = "{\"do\": \"counters\"}\n";
  ASSERT_EQ(::send(deaf, request.data(), request.size(), MSG_NOSIGNAL), std::ssize(request));
  std::atomic<bool> over{false};
  std::thread dawdling([&] {
    while (!over && ::send(slow, " ", 1, MSG_NOSIGNAL) == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(kSilence));  // until it is served
  for (int set = 0; set < 2; ++set) {
    send(0, 0, set, 10);
    send(1, 0, set, 20);
    EXPECT_EQ(answer(0), 30);
    EXPECT_EQ(answer(1), 30);
  }
  over = true;
  dawdling.join();
  for (const int fd : {slow, deaf}) close(fd);
}

TEST(SwitchRun, RefusesAnInterfaceByTwoNames) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made() || !shell("ip -n " + net.name(-1) + " link property add dev p1 altname front"))
    GTEST_SKIP() << "interfaces have no other names here";
  const fs::path plan = fs::path(testing::TempDir()) / ("plan." + std::to_string(getpid()));
  std::ofstream(plan) << kPlan;
  const test::Outcome refused =
      test::shell("ip netns exec " + net.name(-1) + " " GHOSTRANK_BINARY " switch run --plan " +
                  plan.string() + " --ports p0,p1,front");
  fs::remove(plan);
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.text,
            "ghostrank: --ports: front is another name of p1; a frame would come in by both: name "
            "each interface once\n");
}

INSTANTIATE_TEST_SUITE_P(Targets, SwitchControl,
                         testing::Values("compiled", "two_cores", "dpdk", "dpdk_two_cores",
                                         "dpdk_on_xdp", "bmv2"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace ghostrank::switchml
