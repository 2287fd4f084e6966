// Open MPI's schedules against a recording of the real one: data/openmpi_messages.txt, written by
// tests/openmpi/record.sh. A line holds a call and, for every rank, its messages in order:
//
//   allreduce ring n=3 count=3 root=1 | 1x4*4 | 2x4*4 | 0x4*4
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/libraries.h"
#include "collectives/schedule.h"

namespace ghostrank {
namespace {

struct Recorded {
  std::string func, algorithm, sent;  // " | " and the messages, for every rank
  int size = 0, count = 0, root = 0;
};

std::vector<Recorded> recorded() {
  std::ifstream file(GHOSTRANK_SOURCE_DIR "/tests/collectives/data/openmpi_messages.txt");
  std::vector<Recorded> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    Recorded call;
    std::string size, count, root;
    std::istringstream words(line.substr(0, line.find(" |")));
    words >> call.func >> call.algorithm >> size >> count >> root;
    call.size = std::stoi(size.substr(2));
    call.count = std::stoi(count.substr(6));
    call.root = std::stoi(root.substr(5));
    call.sent = line.substr(line.find(" |"));
    all.push_back(call);
  }
  return all;
}

// Counts as tests/openmpi/record.cpp makes them.
Counts counts_of(Func func, int size, int count) {
  std::vector<std::uint64_t> counts;
  const int rows = func == Func::all_to_all_v ? size : 1;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < size; ++j)
      counts.push_back(
          static_cast<std::uint64_t>(count * (rows > 1 ? (i + 2 * j) % 3 : 3 * j % 4)));
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
}

Collective collective(const Recorded& call, Func func) {
  Collective c{func, call.size, static_cast<std::uint64_t>(call.count), 4, call.root};
  if (is_ragged(func)) c.counts = counts_of(func, call.size, call.count);
  return c;
}

// The sends of a rank, in the file's form.
std::string sent_text(const Schedule& schedule, GroupRank r) {
  std::string text, last;
  int equal = 0;
  const auto end_run = [&] {
    if (equal > 0) text += ' ' + last;
    if (equal > 1) text += '*' + std::to_string(equal);
  };
  for (int k = 0; k < schedule.actor(r, 0).steps; ++k) {
    const Step step = schedule.step(r, 0, k);
    if (step.send_to.empty()) continue;
    const std::string message =
        std::to_string(step.send_to[0]) + 'x' + std::to_string(step.send.count * 4);
    if (message == last && equal > 0) {
      ++equal;
      continue;
    }
    end_run();
    last = message;
    equal = 1;
  }
  end_run();
  return text;
}

std::string sent_by_all(const Schedule& schedule) {
  std::string text;
  for (GroupRank r = 0; r < schedule.collective().size; ++r) text += " |" + sent_text(schedule, r);
  return text;
}

const std::map<std::string, Func>& funcs() {
  static const std::map<std::string, Func> kFuncsByName = [] {
    std::map<std::string, Func> names;
    for (int f = 0; f < kFuncs; ++f)
      names[std::string(name_of(static_cast<Func>(f)))] = static_cast<Func>(f);
    return names;
  }();
  return kFuncsByName;
}

TEST(OpenMpiMessages, AreThoseThatOpenMpiSends) {
  const std::vector<Recorded> calls = recorded();
  ASSERT_EQ(calls.size(), 1134U);
  int differing = 0;
  for (const Recorded& call : calls) {
    const Func func = funcs().at(call.func);
    const Algorithm* row = find_algorithm("openmpi-4.1", func, call.algorithm);
    ASSERT_NE(row, nullptr) << call.func << ' ' << call.algorithm;
    const auto schedule = row->make(collective(call, func), {});
    const std::string sent = sent_by_all(*schedule);
    if (sent == call.sent) continue;
    ADD_FAILURE() << call.func << ' ' << call.algorithm << " (" << schedule->played() << ") of "
                  << call.size << " ranks, count " << call.count << ", root " << call.root
                  << "\n  Open MPI:" << call.sent << "\n  here:    " << sent;
    if (++differing == 20) break;
  }
}

TEST(OpenMpiMessages, WereRecordedForEveryAlgorithm) {
  std::set<std::string> seen;
  for (const Recorded& call : recorded()) seen.insert(call.func + ' ' + call.algorithm);
  for (const Algorithm& row : openmpi_rows()) {
    if (row.func == Func::send_recv) continue;
    EXPECT_TRUE(seen.contains(std::string(name_of(row.func)) + ' ' + std::string(row.name)))
        << name_of(row.func) << ' ' << row.name;
  }
}

}  // namespace
}  // namespace ghostrank
