#include "profiles/trace/sqlite_rows.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "profiles/error.h"

#ifdef GHOSTRANK_WITH_SQLITE3
#include <sqlite3.h>
#endif

namespace ghostrank {

void SqliteRows::fail(const std::string& what) const {
  throw Error(file_.path() + ": " + table_ + " row " + std::to_string(row_) + ": " + what);
}

#ifdef GHOSTRANK_WITH_SQLITE3
namespace {

// A URI, since only that form can say that nobody changes the file.
std::string uri_of(const std::string& path) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out = "file:";
  for (const unsigned char c : std::filesystem::absolute(path).string()) {
    if (std::isalnum(c)) {
      out += static_cast<char>(c);
    } else {
      out += {'%', kDigits[c >> 4], kDigits[c & 15]};
    }
  }
  return out + "?immutable=1";
}

std::string quoted(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

void SqliteClose::operator()(sqlite3* db) const { sqlite3_close_v2(db); }
void SqliteClose::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

std::string SqliteFile::failure() const {
  const int code = sqlite3_errcode(db_.get());
  if (code == SQLITE_NOMEM)  // it also says so of a damaged value that claims to be huge
    return "SQLite: out of memory, or a value is damaged; write the file again";
  if (code == SQLITE_NOTADB)
    return "is no SQLite database; unpack it if it is compressed, since it is read in place";
  return std::string("SQLite: ") + sqlite3_errmsg(db_.get()) + "; write the file again";
}

void SqliteFile::fail() const { throw Error(path_ + ": " + failure()); }

SqliteFile::SqliteFile(const std::string& path) : path_(path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw Error(path + ": cannot be read; check the path");
  most_rows_ = size / 4;  // a row takes two bytes of its page's index and two of its own
  sqlite3* db = nullptr;
  const int opened = sqlite3_open_v2(
      uri_of(path).c_str(), &db,
      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
      nullptr);
  db_.reset(db);
  if (opened != SQLITE_OK) throw Error(path + ": cannot be read; check the path");
  for (const auto& [setting, on] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                    {SQLITE_DBCONFIG_ENABLE_VIEW, 0}})
    sqlite3_db_config(db, setting, on, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kMostSqliteValue);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  for (const char* pragma : {"PRAGMA cell_size_check=ON", "PRAGMA cache_size=-8192",
                             "PRAGMA mmap_size=0", "PRAGMA schema_version"})
    if (sqlite3_exec(db, pragma, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

bool SqliteFile::has(const std::string& table) {
  sqlite3_stmt* found = nullptr;
  if (sqlite3_prepare_v2(db_.get(),
                         "SELECT rootpage FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE AND "
                         "type IN ('table', 'view')",
                         -1, &found, nullptr) != SQLITE_OK)
    fail();
  const std::unique_ptr<sqlite3_stmt, SqliteClose> statement(found);
  sqlite3_bind_text(found, 1, table.c_str(), -1, SQLITE_STATIC);
  const int step = sqlite3_step(found);
  if (step == SQLITE_DONE) return false;
  if (step != SQLITE_ROW) fail();
  if (sqlite3_column_int64(found, 0) <= 0)  // a view or a virtual table has no pages of its own
    throw Error(path_ + ": " + table + " is no ordinary table; nsys writes only such");
  return true;
}

SqliteRows::SqliteRows(SqliteFile& file, const std::string& table,
                       const std::vector<std::string>& columns, std::size_t required)
    : file_(file), table_(table), columns_(columns) {
  sqlite3* db = file.db_.get();
  if (!file.has(table)) throw Error(file.path() + ": there is no table " + table);
  sqlite3_stmt* found = nullptr;
  // Generated columns are none of these.
  if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1)", -1, &found, nullptr) !=
      SQLITE_OK)
    file.fail();
  std::unique_ptr<sqlite3_stmt, SqliteClose> names(found);
  sqlite3_bind_text(found, 1, table.c_str(), -1, SQLITE_STATIC);
  std::vector<bool> there(columns.size());
  int step;
  while ((step = sqlite3_step(found)) == SQLITE_ROW) {
    const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(found, 0));
    const auto at = std::find(columns.begin(), columns.end(), name ? name : "");
    if (at != columns.end()) there[at - columns.begin()] = true;
  }
  if (step != SQLITE_DONE) file.fail();
  std::string query = "SELECT ";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!there[i] && i < required)
      throw Error(file.path() + ": " + table + " has no column " + columns[i] +
                  "; is it an export of nsys?");
    query += (i > 0 ? ", " : "") + (there[i] ? quoted(columns[i]) : std::string("NULL"));
  }
  query += " FROM " + quoted(table) + " NOT INDEXED";
  if (sqlite3_prepare_v2(db, query.c_str(), -1, &found, nullptr) != SQLITE_OK) file.fail();
  statement_.reset(found);
}

bool SqliteRows::next() {
  const int step = sqlite3_step(statement_.get());
  if (step == SQLITE_DONE) return false;
  ++row_;
  if (step != SQLITE_ROW) fail(file_.failure());
  if (row_ > file_.most_rows_) fail("more rows than the file has room for; write it again");
  return true;
}

bool SqliteRows::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void SqliteRows::expect(int column, int type, const char* what) const {
  if (sqlite3_column_type(statement_.get(), column) != type)
    fail(columns_[column] + " is no " + what);
}

std::uint64_t SqliteRows::bits(int column) const {
  expect(column, SQLITE_INTEGER, "integer");
  return sqlite3_column_int64(statement_.get(), column);
}

std::int64_t SqliteRows::integer(int column, std::int64_t least, std::int64_t most) const {
  const bool is_integer = sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER;
  const std::int64_t value = sqlite3_column_int64(statement_.get(), column);
  if (!is_integer || value < least || value > most)
    fail(columns_[column] + " is no integer from " + std::to_string(least) + " to " +
         std::to_string(most));
  return value;
}

std::string_view SqliteRows::text(int column) const {
  if (is_null(column)) return {};
  expect(column, SQLITE_TEXT, "text");
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (!text) fail(file_.failure());
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view SqliteRows::bytes(int column) const {
  if (is_null(column)) return {};
  expect(column, SQLITE_BLOB, "BLOB");
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  return {bytes,
          bytes ? static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)) : 0};
}
#else
void SqliteClose::operator()(sqlite3*) const {}
void SqliteClose::operator()(sqlite3_stmt*) const {}

SqliteFile::SqliteFile(const std::string& path) : path_(path) {
  throw Error(path +
              ": this ghostrank was built without SQLite, which exports of nsys need; install "
              "libsqlite3-dev and build again");
}

// Unreachable, since no SqliteFile can be made.
bool SqliteFile::has(const std::string&) { return false; }
SqliteRows::SqliteRows(SqliteFile& file, const std::string& table,
                       const std::vector<std::string>& columns, std::size_t)
    : file_(file), table_(table), columns_(columns) {}
bool SqliteRows::next() { return false; }
bool SqliteRows::is_null(int) const { return true; }
void SqliteRows::expect(int, int, const char*) const {}
std::int64_t SqliteRows::integer(int, std::int64_t, std::int64_t) const { return 0; }
std::uint64_t SqliteRows::bits(int) const { return 0; }
std::string_view SqliteRows::text(int) const { return {}; }
std::string_view SqliteRows::bytes(int) const { return {}; }
#endif

}  // namespace ghostrank
