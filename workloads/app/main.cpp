#include <unistd.h>

#include <exception>
#include <iostream>

#include "app/cli.hpp"

int main(int argc, char** argv) {
  const ergometer::workload::Console console{std::cout, std::cerr};
  try {
    return ergometer::workload::run_cli({argv + 1, argv + argc}, console, isatty(STDERR_FILENO) == 1);
  } catch (const std::exception& error) {  // memory, or a defect of a library
    std::cerr << "ergometer-workload: " << error.what() << '\n';
    return 1;
  }
}
