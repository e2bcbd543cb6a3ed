// Synthetic load: what a city's load is made of, in a form that a seed determines. Not a model of any real city.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <random>
#include <system_error>
#include <vector>

#include "core/text.hpp"
#include "load_lstm/load_lstm.hpp"
#include "load_lstm/synthetic.hpp"

namespace ergometer::workload::load_lstm {
namespace {

constexpr double kTwoPi = 6.283185307179586;
constexpr std::int64_t kFirstHour = 394464;  // 2015-01-01 00:00
constexpr std::int64_t kTrainHours = 26304;  // to 2017-12-31
constexpr std::int64_t kValidHours = 8760;   // 2018
constexpr std::int64_t kCities = 14;

// Normal numbers by Box and Muller from a generator that the standard fixes; std::normal_distribution is not fixed.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double operator()() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(kTwoPi * uniform());
  }

 private:
  std::mt19937_64 bits_;
};

// A stationary first-order autoregression: zero mean, a deviation, a memory in hours.
class Slow {
 public:
  Slow(double deviation, double memory_hours)
      : keep_(std::exp(-1.0 / memory_hours)), kick_(deviation * std::sqrt(1.0 - keep_ * keep_)) {}
  double next(Normal& normal) { return value_ = keep_ * value_ + kick_ * normal(); }

 private:
  double keep_;
  double kick_;
  double value_ = 0;
};

struct CityTraits {
  double base;         // mean load, MW
  double residential;  // share of homes against work
  double heating;      // relative load per kelvin below 16 degrees
  double cooling;      // relative load per kelvin above 22 degrees
};

double bump(double hour, double centre, double width) {
  double distance = std::fabs(hour - centre);
  distance = std::min(distance, 24.0 - distance);
  return std::exp(-0.5 * distance * distance / (width * width));
}

double home_shape(double hour, bool free_day) {
  return free_day ? 0.55 * bump(hour, 11.0, 3.0) + 0.95 * bump(hour, 19.5, 2.6) - 0.42
                  : 0.60 * bump(hour, 7.5, 1.6) + 1.05 * bump(hour, 19.5, 2.3) - 0.38;
}

double work_shape(double hour, bool free_day) {
  return free_day ? 0.10 * bump(hour, 12.0, 4.0) - 0.35 : 0.85 * bump(hour, 11.5, 3.8) - 0.22;
}

// Weekends and five fixed holidays, which break the rhythm of the weeks.
bool is_free_day(std::int64_t hour) {
  const std::int64_t weekday = (hour / 24 + 3) % 7;  // 0: Monday; 1970-01-01 was a Thursday
  if (weekday >= 5) return true;
  const std::string date = format_time(hour * 3600).substr(5, 5);
  return date == "01-01" || date == "05-01" || date == "10-03" || date == "12-25" || date == "12-26";
}

// The weather of the region in kelvin around the season's mean, the same for all cities.
std::vector<double> regional_weather(std::uint64_t seed) {
  Normal normal(seed);
  Slow weather(3.4, 80);
  std::vector<double> deviation;
  for (std::int64_t i = 0; i < kTrainHours + kValidHours; ++i) deviation.push_back(weather.next(normal));
  return deviation;
}

std::vector<double> city_load(const CityTraits& city, const std::vector<double>& weather, Normal& normal) {
  Slow local(1.5, 30);        // the city's own weather, K
  Slow economy(0.025, 1500);  // relative
  Slow demand(0.022, 7);      // relative
  std::vector<double> load;
  load.reserve(weather.size());
  for (std::size_t i = 0; i < weather.size(); ++i) {
    const std::int64_t at = kFirstHour + static_cast<std::int64_t>(i);
    const auto hour = static_cast<double>(at % 24);
    const double season = std::cos(kTwoPi * (static_cast<double>(at) / 24.0 - 16454.0) / 365.25);  // 1 on 19 January
    const bool free_day = is_free_day(at);
    const double temperature =
        10.5 - 9.0 * season - 3.5 * std::cos(kTwoPi * (hour - 2.5) / 24.0) + weather[i] + local.next(normal);
    const double relative = 0.86 + city.residential * 0.42 * home_shape(hour, free_day) +
                            (1.0 - city.residential) * 0.58 * work_shape(hour, free_day) + 0.03 * season +
                            city.heating * std::max(0.0, 16.0 - temperature) +
                            city.cooling * std::max(0.0, temperature - 22.0) + economy.next(normal) +
                            demand.next(normal) + 0.008 * normal();
    load.push_back(std::max(0.05, relative) * city.base);
  }
  return load;
}

// By city. Each city has its own stream: more cities do not change the first ones.
std::vector<std::vector<double>> make_loads(std::int64_t cities, std::uint64_t seed) {
  const auto weather = regional_weather(seed);
  std::vector<std::vector<double>> loads;
  for (std::int64_t i = 0; i < cities; ++i) {
    Normal normal(seed + 0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(i + 1));
    const CityTraits traits{45.0 * std::exp(3.4 * normal.uniform()), 0.25 + 0.5 * normal.uniform(),
                            0.008 + 0.010 * normal.uniform(), 0.004 + 0.012 * normal.uniform()};
    loads.push_back(city_load(traits, weather, normal));
  }
  return loads;
}

std::string city_name(std::size_t city) { return fmt::format("City {:02}", city + 1); }

Result<Done> write_csv(const std::string& path, const std::vector<std::vector<double>>& loads, std::int64_t first,
                       std::int64_t hours) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << "Time [s],Load [MWh],City\n";
  for (std::size_t city = 0; city < loads.size(); ++city) {
    fmt::memory_buffer text;
    for (std::int64_t i = first; i < first + hours; ++i) {
      fmt::format_to(std::back_inserter(text), "{},{:.2f},{}\n", format_time((kFirstHour + i) * 3600),
                     loads[city][static_cast<std::size_t>(i)], city_name(city));
    }
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  file.close();
  if (!file)
    return Error{Fault::data, fmt::format("{}: could not be written", path), "is the folder writable, the disk full?"};
  return Done{};
}

}  // namespace

LoadData synthetic_load(Split split, std::int64_t cities, std::uint64_t seed) {
  LoadData data{"synthetic", {}, {}};
  const std::int64_t skipped = split == Split::train ? 0 : kTrainHours;
  const std::int64_t hours = split == Split::train ? kTrainHours : kValidHours;
  const std::int64_t first = kFirstHour + skipped;
  for (const auto& load : make_loads(cities, seed)) {
    City city{city_name(data.cities.size()), data.file, first, first + hours - 1, {{first, {}}}};
    city.runs.front().load.assign(load.begin() + skipped, load.begin() + skipped + hours);
    data.cities.push_back(std::move(city));
  }
  return data;
}

Result<Done> make_data(const MakeDataOptions& options, Console console) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return Error{Fault::data, fmt::format("{}: {}", options.folder, error.message()), {}};
  const std::int64_t cities = options.count > 0 ? options.count : kCities;
  const auto loads = make_loads(cities, options.seed);
  if (auto done = write_csv(options.folder + "/train.csv", loads, 0, kTrainHours); !done) return done;
  if (auto done = write_csv(options.folder + "/valid.csv", loads, kTrainHours, kValidHours); !done) return done;
  console.out << fmt::format("{}: synthetic load of {} cities, train.csv 2015 to 2017, valid.csv 2018\n",
                             options.folder, cities);
  return Done{};
}

}  // namespace ergometer::workload::load_lstm
