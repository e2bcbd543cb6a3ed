#include "molecules/data/make_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <system_error>

#include "molecules/data/generator.hpp"

namespace ergometer::workload::molecules {
namespace {

constexpr std::int64_t kDefaultCount = 2000;

// In Hill's order: carbon, hydrogen, then by letter.
std::string formula(const Molecule& molecule) {
  std::string text;
  for (const std::string_view symbol : {"C", "H", "F", "N", "O"}) {
    const auto count = std::count(molecule.elements.begin(), molecule.elements.end(), atomic_number(symbol));
    if (count > 0) text += symbol;
    if (count > 1) text += std::to_string(count);
  }
  return text;
}

std::string xyz_text(const Molecule& molecule) {
  fmt::memory_buffer text;
  const auto to = std::back_inserter(text);
  const double u0 = molecule.u0;
  fmt::format_to(to, "{}\n", molecule.atoms());
  // A, B, C (GHz), mu, alpha, homo, lumo, gap, r2, zpve; U0, U, H, G; Cv
  fmt::format_to(to, "gdb {}\t3.3\t1.4\t1.1\t2.7\t75.2\t-0.24\t0.011\t0.251\t1189.5\t0.1489\t", molecule.number);
  fmt::format_to(to, "{:.6f}\t{:.6f}\t{:.6f}\t{:.6f}\t31.6\t\n", u0, u0 + 0.0085, u0 + 0.0094, u0 - 0.0427);
  for (std::size_t i = 0; i < molecule.elements.size(); ++i) {
    const float* at = molecule.positions.data() + 3 * i;
    fmt::format_to(to, "{}\t{:.10f}\t{:.10f}\t{:.10f}\t0.\n", element_symbol(molecule.elements[i]),
                   static_cast<double>(at[0]), static_cast<double>(at[1]), static_cast<double>(at[2]));
  }
  const std::int64_t frequencies = std::max<std::int64_t>(1, 3 * molecule.atoms() - 6);
  for (std::int64_t i = 0; i < frequencies; ++i) {
    fmt::format_to(to, "{}{}", i == 0 ? "" : "\t", 200 + 3000 * i / frequencies);
  }
  const std::string name = formula(molecule);
  fmt::format_to(to, "\n{0}\t{0}\t\nInChI=1S/{0}\tInChI=1S/{0}\n", name);
  return fmt::to_string(text);
}

}  // namespace

Result<Done> make_data(const MakeDataOptions& options, Console console) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return Error{Fault::data, fmt::format("{}: {}", options.folder, error.message()), {}};
  const std::int64_t count = options.count > 0 ? options.count : kDefaultCount;
  for (std::int64_t number = 1; number <= count; ++number) {
    const std::string path = fmt::format("{}/dsgdb9nsd_{:06}.xyz", options.folder, number);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << xyz_text(generate_molecule(options.seed, number).molecule);
    file.close();
    if (!file) {
      return Error{Fault::data, fmt::format("{}: could not be written", path),
                   "is the folder writable, the disk full?"};
    }
  }
  console.out << fmt::format("{}: {} made-up molecules in QM9's xyz form\n", options.folder, count);
  return Done{};
}

}  // namespace ergometer::workload::molecules
