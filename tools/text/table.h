// Aligned text for terminals: tables, "name  value" lists, and colour where it is wanted. Widths
// count characters, not bytes.
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

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // short rows are padded with empty cells
};

std::string render(const Table& table, int indent = 0);

// Two columns without a header. An empty name continues the line above.
struct Fact {
  std::string name, value;
};
std::string render(const std::vector<Fact>& facts, int indent = 0);

int display_width(std::string_view utf8);

// Escape sequences, or nothing at all.
struct Paint {
  bool on = false;
  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
  std::string good(std::string_view text) const;
  std::string bad(std::string_view text) const;
};
// Whether a person looks at what is written there.
bool is_terminal(int file_descriptor);
int terminal_width(int file_descriptor);  // in columns; 80 where nobody knows

// On for a terminal, unless NO_COLOR is set or TERM is "dumb".
Paint paint_for(int file_descriptor);

}  // namespace ghostrank
