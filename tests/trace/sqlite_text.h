// A database of SQLite from SQL, for tests and fuzz targets that read one.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sqlite3.h>
#include <string>

namespace ghostrank::test {

// Runs statements, which end with ";\n", in a new database at `path`; one that fails does not keep
// the others back. Returns the first failure's text, or "".
inline std::string write_sqlite(const std::string& path, const std::string& sql) {
  std::filesystem::remove(path);
  sqlite3* opened = nullptr;
  sqlite3_open(path.c_str(), &opened);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> db(opened, sqlite3_close);
  std::string error;
  const auto run = [&](const std::string& text) {
    if (sqlite3_exec(opened, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK && error.empty())
      error = sqlite3_errmsg(opened);
  };
  // Small pages, so that damage hits more than one table.
  run("PRAGMA page_size=512; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
  for (std::size_t at = 0; at < sql.size();) {
    const std::size_t end = std::min(sql.find(";\n", at), sql.size());
    run(sql.substr(at, end - at));
    at = end + 2;
  }
  run("COMMIT");
  return error;
}

}  // namespace ghostrank::test
