// Makes a .spec of one that is written by hand in parts. Three kinds of lines are ours, not DPDK's:
//
//   set NAME VALUE        {NAME} is VALUE from here on, in files that are included, too
//   include FILE          the lines of FILE: beside the file that names it, else in `folders`
//   repeat COUNT ... end  the lines between, COUNT times; {i} counts from 0. Of a repeat in a file
//                         that is included there, {i} is its own until its 'end'
//
// A .spec without such lines stays as it is. Lines "#line N FILE" in the result tell parse_spec()
// where the next line is from.
//
// Errors: std::runtime_error "FILE:LINE: what; what to do". Threading: pure but for reading files.
#pragma once

#include <string>
#include <vector>

namespace ghostrank::dpdk {

std::string expand_spec(const std::string& path, const std::vector<std::string>& folders);

}  // namespace ghostrank::dpdk
