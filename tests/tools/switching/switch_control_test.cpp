// The control socket of a switch and its clients: quick ones, slow ones and too many; the switch
// waits for none. The test serves the socket by hand, as the switch does between two batches.
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "switch/ports/fd.h"
#include "tools/switching/control.h"

namespace ghostrank {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kCounters = R"({"do": "counters"})";
constexpr int kLongMs = 20'000;  // until a test gives up

// A switch with as many jobs as the test wants.
class QuietSwitch final : public RunningSwitch {
 public:
  const switchml::SwitchPlan& plan() const override { return plan_; }
  std::string admit(const switchml::JobPlan&) override { return {}; }
  bool remove(const std::string&) override {
    if (broken) throw Error("simple_switch does not answer", ErrorKind::environment);
    return true;
  }
  bool reset(const std::string&) override {
    busy();
    return true;
  }
  switchml::SwitchCounters counters() override {
    if (broken) throw Error("simple_switch does not answer", ErrorKind::environment);
    switchml::SwitchCounters all;
    for (int j = 0; j < jobs; ++j) all.jobs.emplace_back("job" + std::to_string(j), Job());
    return all;
  }
  void stop() override { stopped = true; }

  int jobs = 0;
  bool broken = false;                 // remove() and counters() throw
  std::function<void()> busy = [] {};  // runs during a reset
  std::atomic<bool> stopped{false};

 private:
  using Job = switchml::JobCounters;
  switchml::SwitchPlan plan_;
};

class SwitchClient {
 public:
  explicit SwitchClient(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  // False when the switch has closed the connection.
  bool say(std::string_view text) const {
    return send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) == std::ssize(text);
  }
  void say_no_more() const { shutdown(fd_.get(), SHUT_WR); }
  // All bytes received so far.
  const std::string& heard() {
    std::array<char, 65536> buffer;
    ssize_t n = 0;
    while ((n = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0)
      heard_.append(buffer.data(), static_cast<std::size_t>(n));
    ended_ = ended_ || n == 0;
    return heard_;
  }
  bool ended() {
    heard();
    return ended_;
  }
  // Whether the switch has closed the connection, for a client that does not read.
  bool is_closed() const {
    pollfd polled{fd_.get(), POLLRDHUP, 0};
    return poll(&polled, 1, 0) > 0;
  }

 private:
  Fd fd_;
  std::string heard_;
  bool ended_ = false;
};

class ControlSocket : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void open(std::chrono::milliseconds patience = 1h) { control_.emplace(path_, switch_, patience); }
  bool ready(int patience_ms) const {
    pollfd polled{control_->watch().fd, POLLIN, 0};
    return poll(&polled, 1, patience_ms) > 0;
  }
  // Serves until no client needs service.
  void serve() {
    for (int i = 0; i < 1000 && ready(0); ++i) control_->watch().ready();
    EXPECT_FALSE(ready(0)) << "the switch would spin";
  }
  // Serves until `condition` holds, at most kLongMs.
  void serve_until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLongMs);
    while (!condition() && std::chrono::steady_clock::now() < end && ready(kLongMs))
      control_->watch().ready();
    EXPECT_TRUE(condition());
  }

  const std::string path_ =
      (std::filesystem::path(testing::TempDir()) / ("switch." + std::to_string(getpid()) + ".sock"))
          .string();
  QuietSwitch switch_;
  mutable std::optional<SwitchControl> control_;
};

TEST_F(ControlSocket, AnswersAsCommandsAsk) {
  open();
  EXPECT_THROW(SwitchControl(path_, switch_), Error);
  std::atomic<bool> over{false};
  std::thread serving([&] {
    while (!over) {
      if (ready(10)) control_->watch().ready();
    }
  });
  EXPECT_THAT(ask_switch(path_, kCounters), HasSubstr("\"ok\":true"));
  switch_.jobs = 5'000;  // more than a socket holds
  const std::string large = ask_switch(path_, kCounters);
  EXPECT_THAT(large, EndsWith("\"ok\":true}"));
  EXPECT_THAT(large, HasSubstr("\"job4999\""));
  over = true;
  serving.join();
  control_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_THROW(ask_switch(path_, "{}"), Error);
}

TEST_F(ControlSocket, AnswersWhatTheSwitchCouldNotDoAndGoesOn) {
  switch_.broken = true;
  for (const char* request : {kCounters, R"({"do": "remove", "job": "a"})"})
    EXPECT_EQ(answer_switch(switch_, request),
              R"({"ok":false,"error":"simple_switch does not answer"})");
  switch_.broken = false;
  EXPECT_THAT(answer_switch(switch_, kCounters), HasSubstr("\"ok\":true"));
}

TEST_F(ControlSocket, TakesThePlaceOfASocketOnly) {
  std::ofstream(path_) << "a file of the user";
  EXPECT_THROW(open(), Error);
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
  std::filesystem::remove(path_);
  open();
  std::filesystem::remove(path_);
  std::ofstream(path_) << "a file of the user";
  control_.reset();
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
}

TEST_F(ControlSocket, TellsWhoAskedToStopWhenAnotherCanListen) {
  open();
  std::atomic<bool> listens{true};
  std::thread serving([&] {
    serve_until([&] { return switch_.stopped.load(); });
    std::this_thread::sleep_for(100ms);  // the switch still writes its results
    listens = false;
    control_.reset();
  });
  EXPECT_THAT(ask_switch(path_, R"({"do": "stop"})", Until::stopped), HasSubstr("\"ok\":true"));
  EXPECT_FALSE(listens);
  const SwitchControl next(path_, switch_);
  serving.join();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ControlSocket, HearsAClientByteByByteAndOthersMeanwhile) {
  open();
  SwitchClient slow(path_);
  for (const char c : std::string(kCounters)) {
    ASSERT_TRUE(slow.say({&c, 1}));
    serve();  // returns
    SwitchClient quick(path_);
    quick.say(std::string(kCounters) + "\n");
    serve();
    EXPECT_THAT(quick.heard(), HasSubstr("\"ok\":true"));
    ASSERT_EQ(slow.heard(), "");
  }
  slow.say("\n");
  serve();
  EXPECT_THAT(slow.heard(), EndsWith("\"ok\":true}\n"));
  EXPECT_TRUE(slow.ended());
}

TEST_F(ControlSocket, TakesTheEndOfWhatAClientSaysForTheLines) {
  open();
  SwitchClient client(path_);
  client.say(kCounters);
  serve();
  EXPECT_EQ(client.heard(), "");
  client.say_no_more();
  serve();
  EXPECT_THAT(client.heard(), EndsWith("\"ok\":true}\n"));
}

TEST_F(ControlSocket, CarriesOutOneRequestBetweenTwoBatches) {
  int resets = 0;
  switch_.busy = [&] { ++resets; };
  open();
  std::array<std::optional<SwitchClient>, 3> clients;
  for (auto& client : clients) {
    client.emplace(path_);
    client->say("{\"do\": \"reset\", \"job\": \"a\"}\n");
  }
  for (int turn = 1; turn <= 3; ++turn) {
    EXPECT_TRUE(ready(0));
    control_->watch().ready();
    EXPECT_EQ(resets, turn);
  }
  EXPECT_FALSE(ready(0));
}

TEST_F(ControlSocket, GoesOnWhileAnAnswerIsNotTaken) {
  switch_.jobs = 5'000;
  open();
  SwitchClient idle(path_);
  idle.say(std::string(kCounters) + "\n");
  serve();  // returns although the client does not read
  SwitchClient quick(path_);
  quick.say("{}\n");
  serve();
  EXPECT_THAT(quick.heard(), HasSubstr("\"ok\":false"));
  serve_until([&] { return idle.ended(); });
  EXPECT_THAT(idle.heard(), EndsWith("\"ok\":true}\n"));
  EXPECT_THAT(idle.heard(), HasSubstr("\"job4999\""));
}

TEST_F(ControlSocket, RefusesALineWithoutEnd) {
  open();
  SwitchClient client(path_);
  const std::string piece(SwitchControl::kMostRequest / 2, ' ');
  for (int i = 0; i < 2; ++i) {
    client.say(piece);
    serve();
    EXPECT_FALSE(client.ended());
  }
  client.say(" ");
  serve();
  EXPECT_THAT(client.heard(), HasSubstr("a request has at most 65536 bytes"));
  EXPECT_TRUE(client.ended());
}

// One client falls silent, the other sends without end: patience covers the whole line.
TEST_F(ControlSocket, DropsAClientThatDoesNotEndItsLine) {
  open(20ms);
  for (const bool talks : {false, true}) {
    SwitchClient slow(path_);
    slow.say("{");
    serve_until([&] {
      if (talks) slow.say(" ");
      return slow.ended();
    });
    EXPECT_THAT(slow.heard(), HasSubstr("no whole line within 20 ms"));
  }
}

TEST_F(ControlSocket, DropsAClientThatDoesNotTakeItsAnswer) {
  switch_.jobs = 5'000;
  open(20ms);
  SwitchClient idle(path_);
  idle.say(std::string(kCounters) + "\n");
  serve_until([&] { return idle.is_closed(); });
  EXPECT_TRUE(idle.ended());
  EXPECT_THAT(idle.heard(), testing::Not(EndsWith("\n")));
}

// A client's line may arrive while another's request is carried out.
TEST_F(ControlSocket, DropsNobodyWhoWaitedForAnother) {
  std::optional<SwitchClient> waiting;
  switch_.busy = [&] {
    waiting->say(std::string(kCounters) + "\n");
    std::this_thread::sleep_for(60ms);  // longer than the client's patience
  };
  open(50ms);
  SwitchClient first(path_);
  waiting.emplace(path_);
  first.say("{\"do\": \"reset\", \"job\": \"a\"}\n");
  serve();
  EXPECT_EQ(first.heard(), "{\"ok\":true}\n");
  EXPECT_THAT(waiting->heard(), EndsWith("\"ok\":true}\n"));
}

TEST_F(ControlSocket, HearsSoManyAtOnceAndTheNextAfterThem) {
  open();
  std::array<std::optional<SwitchClient>, SwitchControl::kMostClients> silent;
  for (auto& client : silent) client.emplace(path_);
  serve();
  SwitchClient next(path_);
  next.say(std::string(kCounters) + "\n");
  serve();
  EXPECT_EQ(next.heard(), "");
  silent[3].reset();
  serve();
  EXPECT_THAT(next.heard(), EndsWith("\"ok\":true}\n"));
}

}  // namespace
}  // namespace ghostrank
