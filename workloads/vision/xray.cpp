// Chest X-rays listed in a CSV file, and the predictions for them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/csv.hpp"
#include "core/csv_writer.hpp"
#include "core/text.hpp"
#include "vision/augment.hpp"
#include "vision/data.hpp"
#include "vision/decode.hpp"
#include "vision/picture_set.hpp"

namespace ergometer::workload::vision {
namespace {

const std::vector<std::string>& label_names() {
  static const std::vector<std::string> names = {"negative", "positive"};
  return names;
}

struct Columns {
  std::size_t image = 0;
  std::size_t label = 0;
};

Result<std::size_t> find_column(const std::vector<std::string_view>& header, std::string_view name,
                                const std::string& where) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < header.size(); ++i) {
    names.push_back(std::string(trim(header[i])));
    if (lower(names.back()) == name) return i;
  }
  return Error{Fault::data, fmt::format("{}: no column '{}'", where, name),
               fmt::format("the first line names the columns; the nearest is '{}'", nearest(name, names))};
}

Result<Columns> read_header(CsvReader& csv, const std::string& path) {
  std::vector<std::string_view> fields;
  const auto read = csv.next(fields);
  if (!read) return read.error();
  if (!*read) return Error{Fault::data, fmt::format("{}: the file is empty", path), {}};
  const auto image = find_column(fields, "image", csv.where());
  if (!image) return image.error();
  const auto label = find_column(fields, "label", csv.where());
  if (!label) return label.error();
  return Columns{*image, *label};
}

Result<std::vector<Picture>> read_list(const std::string& path) {
  auto csv = CsvReader::open(path);
  if (!csv) return csv.error();
  const auto columns = read_header(*csv, path);
  if (!columns) return columns.error();
  std::vector<Picture> pictures;
  std::vector<std::string_view> fields;
  while (true) {
    const auto more = csv->next(fields);
    if (!more) return more.error();
    if (!*more) break;
    const std::string_view image = trim(fields[columns->image]);
    const std::string label = lower(trim(fields[columns->label]));
    if (image.empty()) return Error{Fault::data, fmt::format("{}: the image is empty", csv->where()), {}};
    const auto found = std::find(label_names().begin(), label_names().end(), label);
    if (found == label_names().end()) {
      return Error{Fault::data, fmt::format("{}: the label '{}' is not known", csv->where(), label),
                   "a label is 'negative' or 'positive'"};
    }
    pictures.push_back({std::string(image), found - label_names().begin()});
  }
  if (pictures.empty()) return Error{Fault::data, fmt::format("{}: no rows after the header", path), {}};
  return pictures;
}

// FOLDER or FOLDER/imgs, whichever holds one of the listed pictures.
Result<std::string> find_pictures(const std::string& folder, const std::string& list,
                                  const std::vector<Picture>& pictures) {
  std::error_code ignored;
  for (const Picture& picture : pictures) {
    for (const std::string& place : {folder, folder + "/imgs"}) {
      if (std::filesystem::exists(place + "/" + picture.name, ignored)) return place;
    }
  }
  return Error{Fault::data, fmt::format("{}: none of its images is there", list),
               fmt::format("they are looked for in {0} and in {0}/imgs", folder)};
}

// The source resizes to 240x240, pads by 10 and cuts 224x224; other sizes keep the proportions.
int in_proportion(int pixels, int side) { return static_cast<int>(std::lround(side * pixels / 224.0)); }

Result<Done> prepare_xray_training(Workspace& workspace, int side, Random& random, std::uint8_t* output) {
  constexpr double kMostDegrees = 30;
  Turn turn;
  turn.side = side;
  turn.from = in_proportion(240, side);
  turn.pad = in_proportion(10, side);
  const bool mirror = random.coin();
  turn.degrees = random.between(-kMostDegrees, kMostDegrees);
  turn.left = static_cast<int>(random.below(turn.from + 2 * turn.pad - side + 1));
  turn.top = static_cast<int>(random.below(turn.from + 2 * turn.pad - side + 1));
  const auto done = decode(
      workspace.bytes, 1, [&](Size size) { return whole_picture(size, turn.from); }, workspace.pixels);
  if (!done) return done;
  workspace.square.resize(static_cast<std::size_t>(turn.from) * static_cast<std::size_t>(turn.from));
  resample(workspace.pixels, {turn.from, turn.from}, mirror, workspace.resample, workspace.square.data());
  turn_and_crop(workspace.square.data(), turn, output);
  return Done{};
}

Result<Done> prepare_xray_validation(Workspace& workspace, int side, Random&, std::uint8_t* output) {
  const auto done = decode(
      workspace.bytes, 1, [&](Size size) { return whole_picture(size, side); }, workspace.pixels);
  if (done) resample(workspace.pixels, {side, side}, false, workspace.resample, output);
  return done;
}

class XrayPredictions : public PredictionWriter {
 public:
  XrayPredictions(CsvWriter file, const PictureSet& data) : file_(std::move(file)), data_(data) {}

  // Rows of `predictions` beyond the samples are padding.
  Result<Done> write(const std::vector<std::int64_t>& samples, const torch::Tensor& predictions) override {
    const torch::Tensor shares =
        predictions.detach().to(torch::kCPU, torch::kFloat32).softmax(1).select(1, 1).contiguous();
    const float* positive = shares.data_ptr<float>();
    std::string lines;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Picture& picture = data_.picture(samples[i]);
      lines += fmt::format("{},{},", csv_field(picture.name), label_names()[static_cast<std::size_t>(picture.label)]);
      if (data_.is_unreadable(samples[i])) {
        lines += ",\n";
      } else {
        lines += fmt::format("{},{:.6f}\n", label_names()[positive[i] > 0.5F ? 1 : 0], positive[i]);
      }
    }
    return file_.write(lines);
  }

  Result<Done> close() override { return file_.close(); }

 private:
  CsvWriter file_;
  const PictureSet& data_;
};

}  // namespace

Result<std::unique_ptr<DataSet>> open_xrays(const DataOptions& options, Split split, const Form& form) {
  const auto side = side_of(form, options);
  if (!side) return side.error();
  const std::string list = options.folder + (split == Split::train ? "/train.csv" : "/valid.csv");
  auto pictures = read_list(list);
  if (!pictures) return pictures.error();
  auto folder = find_pictures(options.folder, list, *pictures);
  if (!folder) return folder.error();
  PictureSet::Contents contents;
  contents.folder = std::move(*folder);
  contents.pictures = std::move(*pictures);
  contents.class_names = label_names();
  contents.channels = form.channels;
  contents.side = *side;
  contents.prepare = split == Split::train ? prepare_xray_training : prepare_xray_validation;
  return std::unique_ptr<DataSet>(std::make_unique<PictureSet>(std::move(contents), options));
}

Result<std::unique_ptr<PredictionWriter>> write_xray_predictions(const std::string& path, const DataSet& data) {
  const auto* pictures = dynamic_cast<const PictureSet*>(&data);
  if (!pictures) {
    return Error{Fault::usage, "predictions are not written for synthetic pictures", "give a folder of pictures"};
  }
  auto file = CsvWriter::create(path, "image,label,predicted,probability_positive");
  if (!file) return file.error();
  return std::unique_ptr<PredictionWriter>(std::make_unique<XrayPredictions>(std::move(*file), *pictures));
}

}  // namespace ergometer::workload::vision
