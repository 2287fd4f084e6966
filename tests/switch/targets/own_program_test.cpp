// A user's program on DPDK: any .spec, with its table entries from a file. Skipped where ghostrank
// was built without DPDK.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "switch/ports/pcap_file.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

namespace fs = std::filesystem;

// Sends a frame to the port of its target's entry, with a number from a register written into it;
// drops other frames.
constexpr const char* kProgram = R"(struct ethernet_t {
	bit<48> dst
	bit<48> src
	bit<16> type
}
header ethernet instanceof ethernet_t
struct metadata_t {
	bit<32> in
	bit<32> out
	bit<32> cell
	bit<48> number
}
metadata instanceof metadata_t
struct to_arg_t {
	bit<32> port
	bit<32> cell
}
regarray numbers size 16 initval 0
action to args instanceof to_arg_t {
	mov m.out t.port
	mov m.cell t.cell
	return
}
action nowhere args none {
	drop
	return
}
table targets {
	key {
		h.ethernet.dst exact
	}
	actions {
		to
		nowhere
	}
	default_action nowhere args none const
	size 16
}
apply {
	rx m.in
	extract h.ethernet
	table targets
	regrd m.number numbers m.cell
	mov h.ethernet.src m.number
	emit h.ethernet
	tx m.out
}
)";

class OwnProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(GHOSTRANK_BINARY).parent_path() / "ghostrank-dpdk"))
      GTEST_SKIP() << "built without DPDK";
    folder_ = fs::path(testing::TempDir()) / ("own." + std::to_string(getpid()));
    fs::create_directories(folder_);
    std::ofstream(file("own.spec")) << kProgram;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  // Returns the exit status; the output is in file("log").
  int play(const std::string& entries) const {
    std::ofstream(file("entries")) << entries;
    const int status = std::system(
        (std::string(GHOSTRANK_BINARY) + " switch run --target dpdk --program " + file("own.spec") +
         " --entries " + file("entries") + " --ports " + file("in.pcap") + ":" + file("out0.pcap") +
         ",:" + file("out1.pcap") + " >" + file("log") + " 2>&1")
            .c_str());
    return WEXITSTATUS(status);
  }
  std::string said() const {
    std::ifstream in(file("log"));
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  fs::path folder_;
};

TEST_F(OwnProgram, RunsWithEntriesAndRegistersFromAFile) {
  Bytes known = chunk(0, 0, 0, 1, 32), unknown = known;
  known[5] = std::byte{7};
  unknown[5] = std::byte{8};
  {
    PcapWriter in(file("in.pcap"));
    for (const Bytes& frame : {known, unknown, known})
      std::memcpy(in.frame(1, frame.size()), frame.data(), frame.size());
  }
  std::uint64_t target = 0;
  for (std::size_t i = 0; i < 6; ++i)
    target = target << 8 | std::to_integer<std::uint64_t>(known[i]);
  ASSERT_EQ(play("targets match " + std::to_string(target) +
                 " action to port 1 cell 3\nregister numbers 3 258\n"),
            0)
      << said();
  const Bytes source{std::byte{0}, std::byte{0}, std::byte{0},
                     std::byte{0}, std::byte{1}, std::byte{2}};
  std::copy(source.begin(), source.end(), known.begin() + 6);
  PcapReader out(file("out1.pcap")), none(file("out0.pcap"));
  for (int n = 0; n < 2; ++n) {
    const auto frame = out.next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(Bytes(frame->bytes.begin(), frame->bytes.end()), known);
  }
  EXPECT_FALSE(out.next());
  EXPECT_FALSE(none.next());
}

// Nobody controls the runner: a file of its own may then have the number of the control line.
TEST_F(OwnProgram, RunsWithoutAControlLine) {
  PcapWriter(file("in.pcap")).finish();
  std::ofstream(file("entries")) << "";
  const fs::path runner = fs::path(GHOSTRANK_BINARY).parent_path() / "ghostrank-dpdk";
  const int status =
      std::system((runner.string() + " " + file("own.spec") + " " + file("entries") + " " +
                   file("in.pcap") + ":" + file("out.pcap") + " >" + file("log") + " 2>&1 3>&-")
                      .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0) << said();
}

TEST_F(OwnProgram, IsToldWhichEntryItsTablesDoNotTake) {
  PcapWriter(file("in.pcap")).finish();
  EXPECT_EQ(play("targets match 1 action to harbour 1\n"), 2);
  EXPECT_NE(said().find("table 'targets' does not take the entry"), std::string::npos) << said();
}

}  // namespace
}  // namespace ghostrank::switchml
