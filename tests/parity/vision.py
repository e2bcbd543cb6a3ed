"""Reference values of the vision networks from torchvision, for comparison with the C++ ones.

    python3 vision.py OUT

writes OUT/vgg16.pt, resnet50.pt, inception_v3.pt and xray_vgg19.pt: plain dicts of tensors, as torch::pickle_load
reads them. The images are uint8 [batch, channels, side, side], as the C++ task takes them; normalisation is part of
the network. Everything is computed on the CPU in fp32; in training mode with dropout 0.
"""

import os
import sys

import torch
import torchvision
from torch import nn

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
XRAY = ([0.8180], [0.1748])
AUXILIARY_WEIGHT = 0.4


class XrayVgg19(nn.Module):
    """VGG-19 with batch normalisation, one channel, max-pooling 2 with stride 3, one linear layer."""

    def __init__(self):
        super().__init__()
        layers = []
        channels = 1
        for stage in ([64] * 2, [128] * 2, [256] * 4, [512] * 4, [512] * 4):
            for width in stage:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2, stride=3))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(512, 2)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


def inception_v3():
    return torchvision.models.inception_v3(weights=None, aux_logits=True, transform_input=False, init_weights=True)


# name: (network, statistics, classes, side, batch)
NETWORKS = {
    "vgg16": (lambda: torchvision.models.vgg16(weights=None), IMAGENET, 1000, 64, 4),
    "resnet50": (lambda: torchvision.models.resnet50(weights=None), IMAGENET, 1000, 96, 4),
    "inception_v3": (inception_v3, IMAGENET, 1000, 299, 4),
    "xray_vgg19": (XrayVgg19, XRAY, 2, 224, 4),
}


def vary_norms(network):
    """Values that a swapped or forgotten tensor would betray, in place of zeros and ones."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.2, 0.2)
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
        elif isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            nn.init.uniform_(module.bias, -0.1, 0.1)
        elif isinstance(module, nn.Dropout):
            module.p = 0.0


def reference(build, statistics, classes, side, batch):
    torch.manual_seed(1)
    network = build()
    with torch.no_grad():
        vary_norms(network)
    weights = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
    # The C++ network normalises by one product and one sum, of these numbers; it takes them over with the weights.
    mean, deviation = (torch.tensor(values, dtype=torch.float64).view(1, -1, 1, 1) for values in statistics)
    scale, offset = (1 / (255 * deviation)).float(), (-mean / deviation).float()
    weights |= {"pixel_scale": scale, "pixel_offset": offset}
    # Large patches: pictures of pure noise are all alike after some layers.
    patches = torch.rand(batch, scale.numel(), 6, 6) * 255
    images = nn.functional.interpolate(patches, size=(side, side), mode="bilinear").to(torch.uint8)
    labels = torch.randint(0, classes, (batch,))
    labels[-1] = -100  # a picture that could not be read
    normal = images.float() * scale + offset

    network.eval()
    with torch.no_grad():
        output = network(normal)
    network.train()
    if any(isinstance(module, nn.BatchNorm2d) for module in network.modules()):
        network.double()
        normal = images.double() * scale.double() + offset.double()
    result = network(normal)
    if isinstance(result, tuple):
        loss = nn.functional.cross_entropy(result[0], labels)
        loss = loss + AUXILIARY_WEIGHT * nn.functional.cross_entropy(result[1], labels)
    else:
        loss = nn.functional.cross_entropy(result, labels)
    loss.backward()
    return {
        "weights": weights,
        "tensors": [images, labels],
        "samples": batch - 1,
        "tokens": 0,
        "output": output.detach().clone(),
        "loss": loss.detach().clone(),
        "gradients": {name: p.grad.detach().clone() for name, p in network.named_parameters()},
        "options": {"image_size": side, "sequence": 0, "batch": batch},
    }


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for name, parts in NETWORKS.items():
        torch.save(reference(*parts), os.path.join(out, name + ".pt"))
        print(name)


if __name__ == "__main__":
    main()
