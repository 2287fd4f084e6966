"""Records two iterations of Megatron-LM's pretrain_gpt.py, by its own profiler's options.

    PYTHONPATH=MEGATRON-LM record_megatron.py CASE FOLDER       a process of four, see README.md

Megatron-LM is used as it is, with layers of its own ("local": neither Transformer Engine nor Apex). Samples are random,
so that nothing of its data sets has to be compiled; norms are PyTorch's, marked as sequence parallel where they are.
"""

import os
import sys
import time

import torch

COMMON = """--transformer-impl local --hidden-size 128 --num-attention-heads 4 --seq-length 64
    --max-position-embeddings 64 --micro-batch-size 2 --train-iters 7 --lr 1e-4 --bf16
    --tokenizer-type NullTokenizer --vocab-size 500
    --eval-iters 0 --eval-interval 1000 --log-interval 1000 --num-workers 0
    --no-gradient-accumulation-fusion --no-persist-layer-norm --no-bias-gelu-fusion --no-bias-swiglu-fusion
    --no-bias-dropout-fusion --no-masked-softmax-fusion --no-rope-fusion --no-create-attention-mask-in-dataloader
    --hidden-dropout 0 --attention-dropout 0
    --profile --use-pytorch-profiler --pytorch-profiler-collect-chakra --profile-step-start 3 --profile-step-end 5
    --profile-ranks 0 1 2 3"""
LLAMA = """--position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear
    --untie-embeddings-and-output-weights --ffn-hidden-size 384 --group-query-attention --num-query-groups 2"""
SHARDED = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 100000"
CASES = {
    "tp-sp-zero": "--tensor-model-parallel-size 2 --sequence-parallel --num-layers 2 --global-batch-size 8 " + SHARDED,
    "tp-llama": "--tensor-model-parallel-size 2 --num-layers 2 --global-batch-size 8 " + LLAMA,
    "pp": "--pipeline-model-parallel-size 2 --num-layers 2 --global-batch-size 16",
    "tp-sp-pp": "--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2 --num-layers 2 "
                "--global-batch-size 8",
    "interleaved": "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --num-layers 4 "
                   "--global-batch-size 16 " + SHARDED + " " + LLAMA,
    "experts": "--expert-model-parallel-size 2 --num-experts 4 --moe-router-topk 2 --num-layers 2 "
               "--global-batch-size 16 "
               "--moe-token-dispatcher-type alltoall --moe-router-load-balancing-type none --use-distributed-optimizer "
               + LLAMA,
}


class Samples(torch.utils.data.Dataset):
    """Random sequences."""

    def __init__(self, length, vocabulary):
        self.length, self.vocabulary = length, vocabulary

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        ids = torch.randint(0, self.vocabulary, (self.length + 1,), generator=torch.Generator().manual_seed(index))
        return {"tokens": ids[:-1], "labels": ids[1:], "loss_mask": torch.ones(self.length),
                "position_ids": torch.arange(self.length)}


def torch_norms():
    """PyTorch's norms, which Megatron-LM does not take with sequence parallelism unless a fused one is there."""
    from megatron.core.transformer import torch_norm

    def new(cls, config, hidden_size, eps=1e-5, **_):
        kind = torch.nn.RMSNorm if config.normalization == "RMSNorm" else torch.nn.LayerNorm
        norm = kind(hidden_size, eps=eps)
        norm.returns_residual = False
        for parameter in norm.parameters():
            parameter.sequence_parallel = config.sequence_parallel
        return norm

    torch_norm.WrappedTorchNorm.__new__ = new


def timed(step, times):
    def run(*args, **more):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        out = step(*args, **more)
        torch.cuda.synchronize()
        times.append(round(1e3 * (time.perf_counter() - begin), 1))
        return out

    return run


def main():
    case, folder = sys.argv[1:3]
    sys.argv = [sys.argv[0], *COMMON.split(), *CASES[case].split(), "--tensorboard-dir", f"{folder}/{case}/tensorboard"]
    from megatron.core.datasets import utils
    utils.compile_helpers = lambda: None
    torch_norms()
    import pretrain_gpt
    from megatron.core.enums import ModelType
    from megatron.training import pretrain, training
    from megatron.training.argument_utils import gpt_config_from_args, pretrain_cfg_container_from_args
    from megatron.training.arguments import parse_and_validate_args

    times = []
    training.train_step = timed(training.train_step, times)
    args = parse_and_validate_args()
    samples = Samples(args.seq_length, 500)

    def provider(sizes, vp_stage=None):
        return samples, None, None

    provider.is_distributed = True
    pretrain(pretrain_cfg_container_from_args(args, gpt_config_from_args(args)), provider, ModelType.encoder_or_decoder,
             pretrain_gpt.forward_step, get_embedding_ranks=pretrain_gpt.get_embedding_ranks)
    print(case, os.environ["RANK"], "steps in ms:", *times)


main()
