"""Trains a model under DistributedDataParallel over gloo, and knows nothing of ghostrank.

    train.py mlp|resnet|gpt STEPS

mlp: four layers; resnet: ResNet-18's blocks with an eighth of its channels, on 32 x 32 images; gpt: two
transformer blocks with tied embeddings. Data are random.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.path(x) + self.short(x))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.before(x)).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(x)


class Gpt(nn.Module):
    def __init__(self, vocabulary=1000, width=128, layers=2, length=64):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return (self.norm(self.blocks(x)) @ self.tokens.weight.T).flatten(0, 1)


def mlp():
    model = nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(384, 384), nn.ReLU())], nn.Linear(384, 10))
    return model, lambda: (torch.randn(32, 384), torch.randint(0, 10, (32,)))


def resnet():
    widths, layers = [8, 16, 32, 64], [nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)]
    for i, width in enumerate(widths):
        layers += [Residual(widths[max(i - 1, 0)], width, 1 if i == 0 else 2), Residual(width, width, 1)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*layers), lambda: (torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,)))


def gpt():
    return Gpt(), lambda: (torch.randint(0, 1000, (2, 64)), torch.randint(0, 1000, (128,)))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, batch = {"mlp": mlp, "resnet": resnet, "gpt": gpt}[sys.argv[1]]()
    dist.init_process_group("gloo")
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.5)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9)
    for _ in range(int(sys.argv[2])):
        inputs, labels = batch()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
        optimizer.step()
    dist.destroy_process_group()


main()
