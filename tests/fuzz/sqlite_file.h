// A database of SQLite as the input of a fuzz target: the file itself, or SQL that writes it.
// Damaged bytes test pages that SQLite itself accepts, damaged SQL the content of tables.
#pragma once

#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>

#include "profiles/trace/sqlite_rows.h"
#include "tests/fuzz/fuzz.h"
#include "tests/trace/sqlite_text.h"

namespace ghostrank::fuzz {

// A file on a file system, since SQLite resolves the links under /proc.
class SqliteOnDisk {
 public:
  SqliteOnDisk() {
    std::string name = (std::filesystem::temp_directory_path() / "ghostrank-fuzz-XXXXXX").string();
    const Fd fd(mkstemp(name.data()));
    require(fd.is_open());
    path_ = name;
  }
  ~SqliteOnDisk() { std::filesystem::remove(path_); }
  SqliteOnDisk(const SqliteOnDisk&) = delete;
  SqliteOnDisk& operator=(const SqliteOnDisk&) = delete;

  const std::string& with(std::string_view input) const {
    if (!input.starts_with(kSqliteMark.substr(0, 6))) {
      test::write_sqlite(path_, std::string(input));
      return path_;
    }
    const Fd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    require(write(fd.get(), input.data(), input.size()) == static_cast<ssize_t>(input.size()));
    return path_;
  }

 private:
  std::string path_;
};

}  // namespace ghostrank::fuzz
