// Labelled pictures in files as a data set. Opened by image_folders.cpp and xray.cpp, read by the loader's workers.
//
// Batches hold what classifier.hpp says. A picture that cannot be read leaves its place to a copy of another of the
// batch (so that batch normalisation sees pictures), with kNoLabel, and is counted in Batch::skipped; with `strict` it
// is an error that names the file. notes() names each such file once, as far as they were met. A batch smaller than
// DataOptions::batch has fewer rows and a Batch::shape of its own; with `graphs` it is padded to full size.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/data_set.hpp"
#include "vision/picture.hpp"
#include "vision/random.hpp"
#include "vision/resample.hpp"

namespace ergometer::workload::vision {

struct Picture {
  std::string name;        // below the set's folder; also what predictions call it
  std::int64_t label = 0;  // class
};

// Memory of one worker for one batch, used again from picture to picture.
struct Workspace {
  std::vector<std::uint8_t> bytes;  // the file
  Pixels pixels;
  ResampleScratch resample;
  std::vector<std::uint8_t> square;
};

// Decodes workspace.bytes to side * side * channels bytes at `output`. The message of an error is the reason alone.
using Prepare = Result<Done> (*)(Workspace& workspace, int side, Random& random, std::uint8_t* output);

class PictureSet : public DataSet {
 public:
  struct Contents {
    std::string folder;
    std::vector<Picture> pictures;
    std::vector<std::string> class_names;
    std::vector<std::string> notes;
    std::int64_t channels = 3;
    std::int64_t side = 224;
    bool keeps_class_names = false;  // whether state() is the class names, a line each
    Prepare prepare = nullptr;
  };

  PictureSet(Contents contents, const DataOptions& options)
      : contents_(std::move(contents)), batch_(options.batch), strict_(options.strict), graphs_(options.graphs) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(contents_.pictures.size()); }
  Result<Batch> load(const std::vector<std::int64_t>& samples, std::uint64_t seed) const override;
  std::string state() const override;
  std::vector<std::string> notes() const override;
  // "class_frequencies": cross entropy of always predicting the shares of the classes among these samples.
  std::vector<std::pair<std::string, double>> baselines(const std::vector<std::int64_t>& samples) const override;

  const Picture& picture(std::int64_t sample) const { return contents_.pictures[static_cast<std::size_t>(sample)]; }
  const std::vector<std::string>& class_names() const { return contents_.class_names; }
  // Whether the picture was met and could not be read.
  bool is_unreadable(std::int64_t sample) const;

 private:
  Result<Batch> fill(const std::vector<std::int64_t>& samples, std::uint64_t seed) const;

  Contents contents_;
  std::int64_t batch_;
  bool strict_;
  bool graphs_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, std::string> unreadable_;  // sample: reason
};

}  // namespace ergometer::workload::vision
