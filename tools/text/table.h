// Aligned text for terminals: tables, "name  value" lists, and colour where it is wanted. Widths
// count characters, not bytes. Text may hold names that users chose, so it is made printable().
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

enum class Align { left, right };

struct Column {
  std::string name;
  Align align = Align::left;
};

// Wraps text in terminal escape sequences when `on`.
struct Paint {
  bool on = false;
  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
  std::string good(std::string_view text) const;
  std::string bad(std::string_view text) const;
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // short rows are padded with empty cells
  std::vector<std::size_t> bad = {};           // rows whose last cell is painted as bad, ascending
  Paint paint = {};
};

std::string render(const Table& table, int indent = 0);

// Two columns without a header. An empty name continues the line above.
struct Fact {
  std::string name, value;
};
std::string render(const std::vector<Fact>& facts, int indent = 0);

// Columns of a terminal: two for a wide character, as 日, none for a mark on another, else one.
int display_width(std::string_view utf8);

// The text with a '?' for each control character but ends of lines and tabs, so that a name in it
// cannot command the terminal.
std::string printable(std::string_view utf8);

// True when the descriptor is a terminal that a person watches, not one that mpirun forwards.
bool is_terminal(int file_descriptor);

// True when it is a terminal that understands commands, as to repaint a line: TERM is not dumb.
bool is_smart_terminal(int file_descriptor);
int terminal_width(int file_descriptor);  // columns; 80 if unknown

// On for a terminal, unless NO_COLOR is set or TERM is "dumb".
Paint paint_for(int file_descriptor);

}  // namespace ghostrank
