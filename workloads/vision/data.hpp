// Opening and making the data of the vision workloads. Used by the workloads' table.
#pragma once

#include <memory>
#include <string>

#include "core/workload.hpp"
#include "vision/form.hpp"

namespace ergometer::workload::vision {

// FOLDER/train/CLASS/*.JPEG and FOLDER/val/CLASS/*.JPEG (.jpg, .jpeg, .png in any case; also in folders below CLASS),
// or FOLDER/CLASS/*.JPEG for both splits. Classes are numbered by the sorted names of the training folders (of the
// checkpoint, where options.state is set), whether or not a folder holds pictures; one without is noted. Errors: a
// class that is not among them, more classes than the network has outputs, no picture at all.
[[nodiscard]] Result<std::unique_ptr<DataSet>> open_image_folders(const DataOptions& options, Split split,
                                                                  const Form& form);

// FOLDER/train.csv and FOLDER/valid.csv with the columns `image` and `label` (negative, positive), the images in FOLDER
// or FOLDER/imgs.
[[nodiscard]] Result<std::unique_ptr<DataSet>> open_xrays(const DataOptions& options, Split split, const Form& form);

// 10,240 samples for training, 1,024 for validation, of uniformly random bytes. Every batch has the same pictures and
// labels, in memory that all batches share and that must not be written to: loading costs nothing.
[[nodiscard]] Result<std::unique_ptr<DataSet>> open_synthetic(const DataOptions& options, Split split,
                                                              const Form& form);

// FOLDER/train and FOLDER/val with eight classes of coloured patterns, 800 pictures unless told; one of five is for
// validation. The same bytes for a seed and a version of libjpeg.
[[nodiscard]] Result<Done> make_photos(const MakeDataOptions& options, Console console);

// FOLDER/train.csv, FOLDER/valid.csv and FOLDER/imgs: grey pictures with two dark fields, in half of them with bright
// spots ("positive"); 200 unless told; one of five is for validation, one of four is PNG.
[[nodiscard]] Result<Done> make_xrays(const MakeDataOptions& options, Console console);

// `image,label,predicted,probability_positive`: a row a sample in order; the last two are empty where the picture could
// not be read. A usage error for synthetic data.
[[nodiscard]] Result<std::unique_ptr<PredictionWriter>> write_xray_predictions(const std::string& path,
                                                                               const DataSet& data);

}  // namespace ergometer::workload::vision
