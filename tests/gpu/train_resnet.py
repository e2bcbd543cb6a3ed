"""A short ResNet-50 training in PyTorch with Ergometer's Python markers: synthetic data on the device, bf16 autocast.
usage: train_resnet.py [--epochs 3] [--steps 40] [--batch 256]"""
import argparse

import torch
import torchvision

import ergometer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()

    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(42)
    with ergometer.region("setup"):
        model = torchvision.models.resnet50().to(device, memory_format=torch.channels_last)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        images = torch.randn(options.batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (options.batch,), device=device)

    def step():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimiser.step()
        return loss

    with ergometer.region("warmup"):
        for _ in range(5):
            step()
        torch.cuda.synchronize()
    with ergometer.region("train"):
        for index in range(options.epochs):
            with ergometer.region("epoch", index=index) as epoch:
                for _ in range(options.steps):
                    with ergometer.region("step") as one:
                        loss = step()
                        one.set("samples", options.batch)
                torch.cuda.synchronize()
                epoch.set("samples", options.steps * options.batch)
                epoch.set("loss", loss.item())
                print(f"epoch {index}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
