#include "tools/switching/entry_template.h"

#include <arpa/inet.h>
#include <sstream>

#include "profiles/error.h"
#include "profiles/input/input_file.h"
#include "profiles/input/yaml.h"

namespace ghostrank {
namespace {

std::string number_of_mac(std::string mac) {
  std::erase(mac, ':');
  return "0x" + mac;
}

std::string number_of_ip(const std::string& ip) {
  in_addr address{};
  inet_pton(AF_INET, ip.c_str(), &address);
  return std::to_string(ntohl(address.s_addr));
}

// The words in braces of a line, and whether one of them speaks of a node.
class Line {
 public:
  Line(std::string text, const std::string& where) : text_(std::move(text)) {
    for (std::size_t at = 0; (at = text_.find('{', at)) != std::string::npos;) {
      const std::size_t end = text_.find('}', at);
      const std::string name = end == std::string::npos ? "" : text_.substr(at + 1, end - at - 1);
      if (name != "node" && name != "mac" && name != "ip" && name != "nodes")
        throw Error(where + ": " + quote(text_.substr(at, end - at)) +
                    " is not known; known are {node}, {mac}, {ip} and {nodes}");
      of_a_node_ = of_a_node_ || name != "nodes";
      at = end;
    }
  }

  bool of_a_node() const { return of_a_node_; }
  std::string with(std::size_t node, const std::vector<NodeInterface>& nodes) const {
    std::string out = replaced(text_, "{nodes}", std::to_string(nodes.size()));
    if (!of_a_node_) return out;
    out = replaced(out, "{node}", std::to_string(node));
    out = replaced(out, "{mac}", number_of_mac(nodes[node].mac));
    return replaced(out, "{ip}", number_of_ip(nodes[node].ip));
  }

 private:
  static std::string replaced(std::string text, const std::string& name, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += by.size())
      text.replace(at, name.size(), by);
    return text;
  }

  std::string text_;
  bool of_a_node_ = false;
};

}  // namespace

std::vector<std::string> entries_for(const std::string& file,
                                     const std::vector<NodeInterface>& nodes) {
  std::vector<std::string> lines;
  std::istringstream text(read_input(file));
  int number = 0;
  for (std::string raw; std::getline(text, raw);) {
    ++number;
    const Line line(raw.substr(0, raw.find('#')), file + ":" + std::to_string(number));
    for (std::size_t n = 0; n < (line.of_a_node() ? nodes.size() : 1); ++n)
      lines.push_back(line.with(n, nodes));
  }
  return lines;
}

}  // namespace ghostrank
