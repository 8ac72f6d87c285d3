// Prints the routes that SimGrid computes, for comparison with ours.
// Usage: routes PLATFORM < pairs; a pair is a line "source TAB destination".
// Without any line: the names of all hosts, one a line.
// Output, one line per pair: source TAB destination TAB latency (17 digits) TAB link TAB link ...
// or source TAB destination TAB "error" when SimGrid throws.
#include <cstdio>
#include <exception>
#include <iostream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  engine.load_platform(argv[1]);
  engine.seal_platform();
  std::string line;
  bool any = false;
  while (std::getline(std::cin, line)) {
    any            = true;
    const auto tab = line.find('\t');
    const std::string source = line.substr(0, tab), destination = line.substr(tab + 1);
    std::vector<sg4::Link*> links;
    double latency = 0;
    std::printf("%s\t%s", source.c_str(), destination.c_str());
    std::fflush(stdout);
    try {
      sg4::Host::by_name(source)->route_to(sg4::Host::by_name(destination), links, &latency);
      std::printf("\t%.17g", latency);
      for (const auto* link : links)
        std::printf("\t%s", link->get_cname());
      std::printf("\n");
    } catch (const std::exception&) {
      std::printf("\terror\n");
    }
    std::fflush(stdout);
  }
  if (not any)
    for (const auto* host : engine.get_all_hosts())
      std::printf("%s\n", host->get_cname());
  return 0;
}
