"""A training script that knows nothing of ghostrank: DistributedDataParallel over gloo, 30 steps.

Rank 0 writes the losses and a checksum of the parameters into the file that it is given.
"""

import json
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group("gloo")
model = torch.nn.Sequential(
    torch.nn.Linear(64, 700), torch.nn.ReLU(inplace=True), torch.nn.BatchNorm1d(700),
    torch.nn.Linear(700, 700), torch.nn.ReLU(inplace=True), torch.nn.Linear(700, 10))
ddp = DistributedDataParallel(model, bucket_cap_mb=1)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9)
torch.manual_seed(2 + dist.get_rank())
data = TensorDataset(torch.randn(30 * 16, 64), torch.randint(0, 10, (30 * 16,)))
losses = []
for images, labels in DataLoader(data, batch_size=16):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(ddp(images), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
if dist.get_rank() == 0:
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"losses": losses, "sums": [p.double().sum().item() for p in model.parameters()]}, out)
dist.destroy_process_group()
