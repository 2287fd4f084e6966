// The rows of a table of an SQLite database, each read once. Only sqlite_rows.cpp sees sqlite3,
// which is optional.
//
// Input is not trusted. The file is opened read-only and taken as it lies there, without journal or
// locks, and nothing in its schema is run: views, virtual tables and generated columns are refused,
// indices are not used. Memory is a page cache of 8 MiB and one row, of at most kMostSqliteValue
// bytes; a damaged file cannot have more rows than it has room for. Malformed input gives
// Error(usage) with file, table and row. Threading: one thread per file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace ghostrank {

inline constexpr std::string_view kSqliteMark("SQLite format 3\0", 16);  // the file's first bytes
inline constexpr int kMostSqliteValue = 16 << 20;                        // bytes of a row

struct SqliteClose {
  void operator()(sqlite3* db) const;
  void operator()(sqlite3_stmt* statement) const;
};

class SqliteFile {
 public:
  explicit SqliteFile(const std::string& path);

  // True if there is a table of this name. Throws if the name is that of a view or the like.
  bool has(const std::string& table);
  const std::string& path() const { return path_; }

 private:
  friend class SqliteRows;
  std::string failure() const;  // what SQLite says of the last call
  [[noreturn]] void fail() const;

  std::string path_;
  std::uint64_t most_rows_ = 0;
  std::unique_ptr<sqlite3, SqliteClose> db_;
};

class SqliteRows {
 public:
  // The table must exist, with the first `required` of the columns; the others may be missing, and
  // are null then. The file must outlive the rows.
  SqliteRows(SqliteFile& file, const std::string& table, const std::vector<std::string>& columns,
             std::size_t required);

  bool next();                                            // false: the end
  std::uint64_t row() const { return row_; }              // the first is 1
  [[noreturn]] void fail(const std::string& what) const;  // "FILE: TABLE row 12: what"

  // Values of the row, by index into `columns`. A view ends with next().
  bool is_null(int column) const;
  std::int64_t integer(int column, std::int64_t least, std::int64_t most) const;
  std::uint64_t bits(int column) const;      // an integer whose sign is its highest bit
  std::string_view text(int column) const;   // null: empty
  std::string_view bytes(int column) const;  // null: empty

 private:
  void expect(int column, int type, const char* what) const;

  SqliteFile& file_;
  std::string table_;
  std::vector<std::string> columns_;
  std::unique_ptr<sqlite3_stmt, SqliteClose> statement_;
  std::uint64_t row_ = 0;
};

}  // namespace ghostrank
