#include "vision/workloads.hpp"

#include "vision/classifier.hpp"
#include "vision/data.hpp"

namespace ergometer::workload::vision {
namespace {

// The least sides: five halvings of VGG-16 and ResNet-50; torchvision's limit for Inception v3; five poolings of stride
// 3 that leave one pixel.
constexpr Form kVgg16Form = {"vgg16", 3, 224, 32, kImageNetClasses};
constexpr Form kResnet50Form = {"resnet50", 3, 224, 32, kImageNetClasses};
constexpr Form kInceptionV3Form = {"inception_v3", 3, 299, 75, kImageNetClasses};
constexpr Form kXrayVgg19Form = {"xray_vgg19", 1, 224, 122, kXrayClasses};

template <std::shared_ptr<ImageNetwork> (*make_network)()>
std::unique_ptr<Task> make_task(const DataOptions&) {
  return std::make_unique<Classifier>(make_network());
}

template <const Form& form, Result<std::unique_ptr<DataSet>> (*open_files)(const DataOptions&, Split, const Form&)>
Result<std::unique_ptr<DataSet>> open_data(const DataOptions& options, Split split) {
  return options.folder == "synthetic" ? open_synthetic(options, split, form) : open_files(options, split, form);
}

constexpr OptimiserFacts momentum(double learning_rate) {
  OptimiserFacts facts;
  facts.rule = Rule::sgd;
  facts.learning_rate = learning_rate;
  facts.momentum = 0.9;
  return facts;
}

constexpr OptimiserFacts imagenet_rule(double learning_rate) {
  OptimiserFacts facts = momentum(learning_rate);
  facts.weight_decay = 1e-4;
  return facts;
}

constexpr OptimiserFacts xray_rule() {
  OptimiserFacts facts = momentum(0.1);
  facts.nesterov = true;
  facts.cosine = true;
  return facts;
}

constexpr Workload on_imagenet(const Form& form, std::string_view input, std::int64_t parameters, std::int64_t batch) {
  Workload workload;
  workload.name = form.name;
  workload.domain = "vision";
  workload.data_set = "ImageNet (class folders, JPEG)";
  workload.unit = "images";
  workload.input = input;
  workload.parameters = parameters;
  workload.batch = batch;
  workload.epochs = 90;
  workload.channels_last = true;
  workload.make_data = make_photos;
  return workload;
}

constexpr Workload vgg16() {
  Workload workload = on_imagenet(kVgg16Form, "3x224x224", 138'357'544, 64);
  workload.optimiser = imagenet_rule(0.01);
  workload.source = "Simonyan and Zisserman 2014, arXiv:1409.1556";
  workload.make_task = make_task<make_vgg16>;
  workload.open_data = open_data<kVgg16Form, open_image_folders>;
  return workload;
}

constexpr Workload resnet50() {
  Workload workload = on_imagenet(kResnet50Form, "3x224x224", 25'557'032, 256);
  workload.optimiser = imagenet_rule(0.1);
  workload.source = "He et al. 2015, arXiv:1512.03385";
  workload.make_task = make_task<make_resnet50>;
  workload.open_data = open_data<kResnet50Form, open_image_folders>;
  return workload;
}

constexpr Workload inception_v3() {
  Workload workload = on_imagenet(kInceptionV3Form, "3x299x299", 27'161'264, 128);
  workload.optimiser = imagenet_rule(0.1);
  workload.source = "Szegedy et al. 2015, arXiv:1512.00567";
  workload.make_task = make_task<make_inception_v3>;
  workload.open_data = open_data<kInceptionV3Form, open_image_folders>;
  return workload;
}

constexpr Workload xray_vgg19() {
  Workload workload;
  workload.name = kXrayVgg19Form.name;
  workload.domain = "vision";
  workload.data_set = "chest X-rays (CSV, JPEG, PNG)";
  workload.unit = "images";
  workload.input = "1x224x224";
  workload.parameters = 20'035'266;
  workload.batch = 64;
  workload.epochs = 250;
  workload.optimiser = xray_rule();
  workload.source = "Caspart et al. 2022, arXiv:2212.01698";
  workload.channels_last = true;
  workload.make_task = make_task<make_xray_vgg19>;
  workload.open_data = open_data<kXrayVgg19Form, open_xrays>;
  workload.make_data = make_xrays;
  workload.write_predictions = write_xray_predictions;
  return workload;
}

}  // namespace

const Workload kVgg16 = vgg16();
const Workload kResnet50 = resnet50();
const Workload kInceptionV3 = inception_v3();
const Workload kXrayVgg19 = xray_vgg19();

}  // namespace ergometer::workload::vision
