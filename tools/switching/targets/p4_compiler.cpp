#include "tools/switching/targets/p4_compiler.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <unistd.h>

#include "profiles/error.h"
#include "tools/switching/child.h"
#include "tools/switching/targets/program_cache.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

// The folders of our P4 sources that exist: of the build, of an installation.
std::vector<fs::path> source_folders() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<fs::path> folders{fs::path(GHOSTRANK_SWITCH_PROGRAMS) / "..",
                                here / "../share/ghostrank/switch/p4"};
  std::erase_if(folders, [](const fs::path& folder) { return !fs::exists(folder); });
  return folders;
}

// All that a program prints, errors too, however it ends.
std::string said_by(std::vector<std::string> words) {
  words.insert(words.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&1"});
  Child child(std::move(words));
  while (child.read_output()) {
  }
  return child.output();
}

// All that a compiled program depends on: the compiler's version, its options, and the source with
// all that it includes, as the preprocessor leaves it. Where that fails the compiler will, too; p4c
// calls every end after its preprocessor a failure, so its status says nothing.
std::string made_of(const std::vector<std::string>& words, const std::string& source) {
  std::string all = said_by({words[0], "--version"});
  for (const std::string& word : words) all += word + '\n';
  std::vector<std::string> preprocess = words;
  preprocess.insert(preprocess.end(), {"-E", source});
  return all + said_by(std::move(preprocess));
}

void compile(std::vector<std::string> words, const std::string& source, int elements,
             const std::string& result) {
  if (elements > 0) words.push_back("-DELEMENTS=" + std::to_string(elements));
  // Parts for programs of the user's own.
  for (const fs::path& folder : source_folders()) {
    words.push_back("-I" + (folder / "slots").string());     // of the sources
    words.push_back("-I" + (folder / "../slots").string());  // of an installation
  }
  const std::string key = made_of(words, source);
  if (take_kept_program(key, result)) return;
  const Patience patience("compiling " + source);
  words.insert(words.end(), {source, "-o", result});
  output_of(std::move(words));
  keep_program(key, result);
}

}  // namespace

std::string program_on_path(const std::string& name, const std::string& whose,
                            const std::string& from) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder) / name;
    if (access(file.c_str(), X_OK) == 0) return file.string();
  }
  throw Error(whose + ": there is no " + name + " on PATH; it comes with " + from,
              ErrorKind::environment);
}

std::string output_of(std::vector<std::string> words, const std::string& input) {
  const std::string name = words[0];
  Child child(std::move(words), input);
  while (child.read_output()) {
  }
  std::string text = child.output();
  if (child.status() != 0) throw Error(name + " failed: " + text, ErrorKind::environment);
  return text;
}

void compile_for_bmv2(const std::string& source, int elements, const std::string& result) {
  compile(
      {program_on_path("p4c-bm2-ss", "--target bmv2", "p4lang's p4c; or name JSON with --program"),
       "--std", "p4-16"},
      source, elements, result);
}

void compile_for_dpdk(const std::string& source, int elements, const std::string& result) {
  compile(
      {program_on_path("p4c-dpdk", "--target dpdk", "p4lang's p4c; or name a .spec with --program"),
       "--arch", "pna"},
      source, elements, result);
}

std::string bmv2_source() {
  for (const fs::path& folder : source_folders())
    if (fs::exists(folder / "bmv2.p4")) return (folder / "bmv2.p4").string();
  throw Error("the P4 sources are missing; name a --program", ErrorKind::environment);
}

}  // namespace ghostrank
