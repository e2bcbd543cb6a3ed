// What a workload is to the program: a name, facts to list, and three functions. Used by the registry and the command
// line; each network's folder defines one.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace ergometer::workload {

struct RuntimeOptions {
  std::string device = "cpu";  // cpu or cuda
  int threads = 0;             // of the CPU; 0: OMP_NUM_THREADS, else every processor this process may use
};

struct TrainOptions {
  std::string data;
  RuntimeOptions runtime;
  std::int64_t epochs = 1;
  std::int64_t batch = 1;
  double learning_rate = 0;
  std::uint64_t seed = 42;
  std::optional<std::int64_t> steps;             // at most so many optimiser steps an epoch
  std::optional<std::int64_t> validate_samples;  // validate on so many samples, evenly spaced; otherwise on all
  bool strict = false;                           // missing values stop the run instead of being left out
  std::string checkpoint;                        // written at the end; empty: none
};

struct InferOptions {
  std::string data;
  RuntimeOptions runtime;
  std::string checkpoint;
  std::int64_t batch = 1;
  bool strict = false;
  std::string output;  // results as CSV; empty: none
};

struct MakeDataOptions {
  std::string folder;
  std::int64_t cities = 14;
  std::uint64_t seed = 42;
};

// Where a command writes: its results, and notes on what it left out.
struct Console {
  std::ostream& out;
  std::ostream& notes;
};

struct Workload {
  std::string_view name;
  std::string_view domain;
  std::string_view data_set;
  std::int64_t parameters;  // trainable
  std::int64_t batch;       // defaults of the source
  std::int64_t epochs;
  double learning_rate;
  std::string_view source;
  Result<Done> (*train)(const TrainOptions& options, Console console);
  Result<Done> (*infer)(const InferOptions& options, Console console);
  Result<Done> (*make_data)(const MakeDataOptions& options, Console console);
};

}  // namespace ergometer::workload
