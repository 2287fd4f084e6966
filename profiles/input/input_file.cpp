// See input_file.h.
#include "profiles/input/input_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "profiles/error.h"
#include "profiles/input/files_read.h"

namespace ghostrank {

std::string read_input(const std::string& path, std::string_view remedy, std::uint64_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(path + ": cannot be opened (" + std::strerror(errno) + "); " + std::string(remedy));
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(path + ": is a folder; " + std::string(remedy));
  note_read(path);
  std::string text;
  char block[1 << 16];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes)
      throw Error(path + ": larger than " + std::to_string(most_bytes >> 20) +
                  " MiB; make it smaller");
  }
  if (file.bad()) throw Error(path + ": cannot be read; " + std::string(remedy));
  return text;
}

}  // namespace ghostrank
