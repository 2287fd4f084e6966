// A fuzz target without libFuzzer: replays the files of the seed corpus unchanged, then mutations
// of them with a fixed seed. GHOSTRANK_FUZZ_ROUNDS sets their number.
//
//   fuzz_NAME -rounds=N [-dict=FILE] CORPUS
//
// An input on which the target crashes or takes longer than kPatience is written to ./crash-NAME. A
// file instead of the folder is replayed alone. Threading: one thread.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

constexpr unsigned kPatience = 20;  // seconds for one input, also under sanitizers
constexpr std::size_t kLongest = 64 << 10;

std::string current;  // the current input, for the handler
double slowest_seconds = 0;
std::size_t accepted_inputs = 0;
std::string crash_file;  // where the handler writes the input

// Calls only async-signal-safe functions.
void keep_input(int signal) {
  const int fd = open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ssize_t written = fd < 0 ? -1 : write(fd, current.data(), current.size());
  const char text[] = "fuzz: crashed or took too long; the input is in ";
  written = std::min(written, write(2, text, sizeof text - 1));
  written = std::min(written, write(2, crash_file.c_str(), crash_file.size()));
  written = std::min(written, write(2, "\n", 1));
  std::signal(signal, SIG_DFL);
  std::raise(written < 0 ? SIGKILL : signal);
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> read_corpus(const fs::path& path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path))
    for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  else
    files.push_back(path);
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const fs::path& file : files) seeds.push_back(read(file));
  return seeds;
}

// libFuzzer's form: a line "..." with \xAB, \\ and \", or a comment after #.
std::vector<std::string> read_dictionary(const std::string& path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 2 || line.front() != '"' || line.back() != '"') continue;
    std::string word;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      if (line[i] == '\\' && line[i + 1] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        if (line[i] == '\\') ++i;
        word += line[i];
      }
    }
    words.push_back(word);
  }
  return words;
}

std::size_t below(Random& random, std::size_t bound) {
  return random() % std::max<std::size_t>(1, bound);
}

void overwrite_number(std::string& input, std::size_t at, Random& random) {
  constexpr std::uint64_t kNumbers[] = {0,          1,          0x7f,       0xff, 0x7fffffff,
                                        0x80000000, 0xffffffff, 1ull << 40, ~0ull};
  const std::uint64_t number = kNumbers[below(random, std::size(kNumbers))];
  const std::size_t width = std::size_t{1} << below(random, 4);
  std::memcpy(input.data() + at, &number, std::min(width, input.size() - at));
}

std::string mutate(std::string input, const std::vector<std::string>& seeds,
                   const std::vector<std::string>& words, Random& random) {
  for (std::size_t changes = 1 + below(random, 3); changes > 0; --changes) {
    if (input.empty()) input = "\n";
    const std::size_t at = below(random, input.size());
    switch (below(random, 8)) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1:
        input.erase(at, 1 + below(random, 12));
        break;
      case 2:
      case 3:
        if (!words.empty()) input.insert(at, words[below(random, words.size())]);
        break;
      case 4:
        input.insert(at, input.substr(below(random, input.size()), below(random, 80)));
        break;
      case 5:
        overwrite_number(input, at, random);
        break;
      case 6: {
        const std::string& other = seeds[below(random, seeds.size())];
        input.replace(at, below(random, 80),
                      other.substr(below(random, other.size()), below(random, 80)));
        break;
      }
      default:
        if (below(random, 4) == 0) input.resize(at);
    }
  }
  if (input.size() > kLongest) input.resize(kLongest);
  return input;
}

void play(std::string input) {
  current = std::move(input);
  alarm(kPatience);
  const std::uint64_t before = ghostrank::fuzz::accepted;
  const auto began = std::chrono::steady_clock::now();
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  alarm(0);
  slowest_seconds = std::max(slowest_seconds, took.count());
  accepted_inputs += ghostrank::fuzz::accepted > before;
}

// Not with sanitizers, because they reserve address space that is not memory in use.
void bound_memory() {
#ifndef GHOSTRANK_SANITIZED
  constexpr rlim_t kBytes = 2u << 30;
  const rlimit limit{kBytes, kBytes};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t rounds = 3000;
  std::string corpus;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("-rounds="))
      rounds = std::stoul(argument.substr(8));
    else if (argument.starts_with("-dict="))
      words = read_dictionary(argument.substr(6));
    else
      corpus = argument;
  }
  if (const char* asked = std::getenv("GHOSTRANK_FUZZ_ROUNDS")) rounds = std::stoul(asked);
  if (!fs::exists(corpus)) {
    std::fprintf(stderr, "fuzz: there is no corpus '%s'\n", corpus.c_str());
    return 2;
  }
  if (!fs::is_directory(corpus)) rounds = 0;
  const std::vector<std::string> seeds = read_corpus(corpus);
  if (seeds.empty()) {
    std::fprintf(stderr, "fuzz: no seeds in %s\n", corpus.c_str());
    return 2;
  }
  crash_file = "crash-" + fs::path(argv[0]).filename().string();
  bound_memory();
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM})
    std::signal(signal, keep_input);

  for (const std::string& seed : seeds) play(seed);
  Random random(20240501);
  for (std::size_t i = 0; i < rounds; ++i)
    play(mutate(seeds[below(random, seeds.size())], seeds, words, random));

  const std::size_t runs = seeds.size() + rounds;
  std::printf("%zu seeds, %zu mutations, %zu accepted; the slowest took %.3f s\n", seeds.size(),
              rounds, accepted_inputs, slowest_seconds);
  if (rounds > 0 && (accepted_inputs == 0 || accepted_inputs == runs)) {
    std::fprintf(stderr, "fuzz: these inputs show nothing: all or none were accepted\n");
    return 1;
  }
  return 0;
}
