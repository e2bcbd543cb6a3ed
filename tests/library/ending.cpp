// A program that ends in an unusual way while it measures: ergometer_ending throw|exit|static|abort SCENARIO RUN_DIR.
// Writes one byte to standard output when it does so. Run by measurement_test.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "ergometer/ergometer.hpp"

namespace {

constexpr int kNotStarted = 99;

std::optional<ergometer::Measurement> global;  // destroyed by exit()

void measure_a_little(const ergometer::Measurement& measurement) {
  if (!measurement.error().empty()) {
    std::fprintf(stderr, "%s\n", measurement.error().c_str());
    std::_Exit(kNotStarted);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  if (::write(STDOUT_FILENO, "!", 1) != 1) std::_Exit(kNotStarted);
}

void work(const std::string& how, const ergometer::MeasurementOptions& options) {
  if (how == "static") {
    global.emplace(options);
    measure_a_little(*global);
    std::exit(3);
  }
  ergometer::Measurement measurement(options);
  measure_a_little(measurement);
  if (how == "throw") throw std::runtime_error("training failed");
  if (how == "exit") std::exit(3);
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return kNotStarted;
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ergometer::MeasurementOptions options;
  options.sensors = {std::string("fake=") + argv[2]};
  options.run_dir = argv[3];
  try {
    work(argv[1], options);
  } catch (const std::exception&) {
    return 1;
  }
  return 0;
}
